#include "textflag.h"

// bit h of byte h, for the bytes below 8.
DATA bitOf<>+0(SB)/8, $0x8040201008040201
DATA bitOf<>+8(SB)/8, $0
GLOBL bitOf<>(SB), RODATA|NOPTR, $16

DATA low<>+0(SB)/4, $0x0f0f0f0f
GLOBL low<>(SB), RODATA|NOPTR, $4

DATA lowHigh<>+0(SB)/4, $0x8f8f8f8f
GLOBL lowHigh<>(SB), RODATA|NOPTR, $4

// outside makes AX a bit for each byte at addr that is not in the set. The low half of a byte, with the bit that makes a
// shuffle give 0, finds the row; the high half the bit in it.
#define outside(addr) \
	VMOVDQU   addr, Y4   \
	VPAND     Y4, Y3, Y5 \
	VPSHUFB   Y5, Y0, Y5 \
	VPSRLW    $4, Y4, Y6 \
	VPAND     Y6, Y2, Y6 \
	VPSHUFB   Y6, Y1, Y6 \
	VPAND     Y5, Y6, Y5 \
	VPCMPEQB  Y5, Y7, Y5 \
	VPMOVMSKB Y5, AX

// func runOf(s []byte, from int, set *nibbles) int
TEXT ·runOf(SB), NOSPLIT, $0-48
	MOVQ           s_base+0(FP), SI
	MOVQ           s_len+8(FP), CX
	MOVQ           from+24(FP), BX
	MOVQ           set+32(FP), DX
	VBROADCASTI128 (DX), Y0
	VBROADCASTI128 bitOf<>(SB), Y1
	VPBROADCASTD   low<>(SB), Y2
	VPBROADCASTD   lowHigh<>(SB), Y3
	VPXOR          Y7, Y7, Y7
	LEAQ           -32(CX), R9 // the last block begins here at most

loop:
	CMPQ  BX, R9
	JGT   tail
	outside((SI)(BX*1))
	TESTL AX, AX
	JNZ   found
	ADDQ  $32, BX
	JMP   loop

found:
	BSFL       AX, AX
	ADDQ       BX, AX
	VZEROUPPER
	MOVQ       AX, ret+40(FP)
	RET

tail:
	// The last 32 bytes, those before BX not counted.
	CMPQ  BX, CX
	JGE   all
	outside((SI)(R9*1))
	MOVQ  CX, DX
	MOVQ  BX, CX
	SUBQ  R9, CX
	SHRL  CX, AX
	MOVQ  DX, CX
	TESTL AX, AX
	JNZ   found

all:
	VZEROUPPER
	MOVQ CX, ret+40(FP)
	RET

// func high(s []byte) bool
TEXT ·high(SB), NOSPLIT, $0-25
	MOVQ  s_base+0(FP), SI
	MOVQ  s_len+8(FP), CX
	LEAQ  -32(SI)(CX*1), R9
	VPXOR Y0, Y0, Y0

loop:
	VPOR (SI), Y0, Y0
	ADDQ $32, SI
	CMPQ SI, R9
	JB   loop
	VPOR (R9), Y0, Y0

	VPMOVMSKB Y0, AX
	VZEROUPPER
	TESTL     AX, AX
	SETNE     ret+24(FP)
	RET
