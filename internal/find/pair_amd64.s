#include "textflag.h"

// func indexPair(s []byte, a, b byte, gap int) int
TEXT ·indexPair(SB), NOSPLIT, $0-48
	MOVQ    s_base+0(FP), SI
	MOVQ    s_len+8(FP), CX
	MOVQ    gap+32(FP), DX
	MOVBLZX a+24(FP), AX
	MOVBLZX b+25(FP), BX

	// Both moves before the first VEX instruction: mixing them costs a hundred cycles.
	MOVQ         AX, X0
	MOVQ         BX, X1
	VPBROADCASTB X0, Y0
	VPBROADCASTB X1, Y1
	SUBQ         DX, CX            // how many places there are
	LEAQ         -32(SI)(CX*1), R9 // the last one to look at 32 from
	MOVQ         SI, DI

loop:
	CMPQ      DI, R9
	JA        tail
	VPCMPEQB  (DI), Y0, Y2
	VPCMPEQB  (DI)(DX*1), Y1, Y3
	VPAND     Y2, Y3, Y2
	VPMOVMSKB Y2, AX
	ADDQ      $32, DI
	TESTL     AX, AX
	JZ        loop
	SUBQ      $32, DI

found:
	BSFL       AX, AX
	SUBQ       SI, DI
	ADDQ       DI, AX
	VZEROUPPER
	MOVQ       AX, ret+40(FP)
	RET

tail:
	// The last 32 places, some of them again.
	LEAQ      32(R9), R11
	CMPQ      DI, R11
	JAE       none
	MOVQ      R9, DI
	VPCMPEQB  (DI), Y0, Y2
	VPCMPEQB  (DI)(DX*1), Y1, Y3
	VPAND     Y2, Y3, Y2
	VPMOVMSKB Y2, AX
	TESTL     AX, AX
	JNZ       found

none:
	VZEROUPPER
	MOVQ $-1, AX
	MOVQ AX, ret+40(FP)
	RET
