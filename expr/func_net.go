package expr

import (
	"net/netip"
	"strings"

	"github.com/rsetl/rsetl/record"
)

// address reads an IPv4 or IPv6 address; one with a zone or within brackets is one too. An IPv4 address in IPv6 form is the
// IPv4 one.
func address(p []byte) (netip.Addr, bool) {
	if len(p) == 0 || len(p) > 100 {
		return netip.Addr{}, false
	}
	s := string(p)
	if s[0] == '[' && s[len(s)-1] == ']' {
		s = s[1 : len(s)-1]
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap(), err == nil
}

// network reads 10.0.0.0/8, 2001:db8::/32, or a single address.
func network(p []byte) (netip.Prefix, bool) {
	s := strings.TrimSpace(string(p))
	if len(s) > 100 {
		return netip.Prefix{}, false
	}
	if !strings.Contains(s, "/") {
		a, ok := address([]byte(s))
		if !ok {
			return netip.Prefix{}, false
		}
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	n, err := netip.ParsePrefix(s)
	return n.Masked(), err == nil
}

// special are the networks that no public address is in, beside those that netip knows: RFC 6598, 5737, 2544, 1112, 3849.
var special = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}

func public(a netip.Addr) bool {
	if a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || a.IsInterfaceLocalMulticast() {
		return false
	}
	for _, n := range special {
		if n.Contains(a) {
			return false
		}
	}
	return true
}

func netFuncs() []Function {
	const cat = "network"
	test := func(name, summary, example, result string, f func(a netip.Addr, ok bool) bool, aliases ...string) Function {
		return Function{Name: name, Aliases: aliases, Signature: name + "(text)", Summary: summary, Example: example, ExampleResult: result, Args: "s", Result: booleanNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				ip, ok := address(env.bytes(a[0]))
				return record.MakeBool(f(ip, ok))
			}}
	}
	fs := []Function{
		test("IS_IP", "whether the text is an IPv4 or IPv6 address", "IS_IP('2001:db8::1')", "TRUE", func(_ netip.Addr, ok bool) bool { return ok }),
		test("IS_IPV4", "whether the text is an IPv4 address", "IS_IPV4('10.1.2.3')", "TRUE", func(a netip.Addr, ok bool) bool { return ok && a.Is4() }),
		test("IS_IPV6", "whether the text is an IPv6 address", "IS_IPV6('::1')", "TRUE", func(a netip.Addr, ok bool) bool { return ok && a.Is6() }),
		test("IS_PRIVATE_IP", "whether the text is an address of a private network (RFC 1918, 4193), of this host or link", "IS_PRIVATE_IP('192.168.1.9')", "TRUE",
			func(a netip.Addr, ok bool) bool {
				return ok && (a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast())
			}),
		test("IS_PUBLIC_IP", "whether the text is an address that may be one of the public internet", "IS_PUBLIC_IP('8.8.8.8')", "TRUE",
			func(a netip.Addr, ok bool) bool { return ok && public(a) }),
		{Name: "CIDR_MATCH", Aliases: []string{"IP_CONTAINS", "IN_CIDR"}, Signature: "CIDR_MATCH(ip, network, ...)", Summary: "whether the address is in one of the networks, IPv4 or IPv6; the networks may come first too",
			Nulls: "NULL where an argument is, or the first is no address", Example: "CIDR_MATCH('10.1.2.3', '10.0.0.0/8', 'fd00::/8')", ExampleResult: "TRUE", Args: "ss*", Result: simple(TBoolean), Build: buildCIDR},
		{Name: "IP_TO_INT", Aliases: []string{"IP2LONG", "INET_ATON"}, Signature: "IP_TO_INT(ip)", Summary: "an IPv4 address as a number", Nulls: "NULL for what is no IPv4 address",
			Example: "IP_TO_INT('10.0.0.1')", ExampleResult: "167772161", Args: "s", Result: simple(TBigInt),
			Fn: func(env *Env, a []record.Value) record.Value {
				ip, ok := address(env.bytes(a[0]))
				if !ok || !ip.Is4() {
					return null
				}
				b := ip.As4()
				return record.MakeInt(int64(b[0])<<24 | int64(b[1])<<16 | int64(b[2])<<8 | int64(b[3]))
			}},
		{Name: "INT_TO_IP", Aliases: []string{"LONG2IP", "INET_NTOA"}, Signature: "INT_TO_IP(number)", Summary: "the IPv4 address of a number", Nulls: "NULL for a number out of range",
			Example: "INT_TO_IP(167772161)", ExampleResult: "10.0.0.1", Args: "i", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				n := a[0].Int()
				if n < 0 || n > 1<<32-1 {
					return null
				}
				off := len(env.B.Buf)
				env.B.Buf = netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).AppendTo(env.B.Buf)
				return env.B.Since(off)
			}},
		{Name: "IP_NETWORK", Aliases: []string{"IP_SUBNET", "MASK_IP"}, Signature: "IP_NETWORK(ip, bits[, bits6])", Summary: "the network of so many bits that the address is in, without them: its last part is zero; bits6 for IPv6, 48 by default",
			Nulls: "NULL for what is no address", Example: "IP_NETWORK('10.1.2.3', 24)", ExampleResult: "10.1.2.0", Args: "si?i", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				ip, ok := address(env.bytes(a[0]))
				if !ok {
					return null
				}
				bits := a[1].Int()
				if ip.Is6() {
					bits = 48
					if len(a) > 2 {
						bits = a[2].Int()
					}
				}
				if bits < 0 || bits > int64(ip.BitLen()) {
					return null
				}
				n, err := ip.WithZone("").Prefix(int(bits))
				if err != nil {
					return null
				}
				off := len(env.B.Buf)
				env.B.Buf = n.Addr().AppendTo(env.B.Buf)
				return env.B.Since(off)
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}

// buildCIDR reads constant networks once. `ip_contains(network, ip)` is understood where the first argument is a constant network.
func buildCIDR(c *Call) (EvalFunc, error) {
	first, nets := 0, make([]int, 0, c.Len()-1)
	if s, ok := c.ConstText(0); ok && strings.Contains(s, "/") && c.Len() == 2 {
		first, nets = 1, append(nets, 0)
	} else {
		for i := 1; i < c.Len(); i++ {
			nets = append(nets, i)
		}
	}
	var konst []netip.Prefix
	var dynamic []EvalFunc
	for _, i := range nets {
		s, ok := c.ConstText(i)
		if !ok {
			dynamic = append(dynamic, c.Arg(i))
			continue
		}
		n, ok := network([]byte(s))
		if !ok {
			return nil, c.Errorf(i, "%q is no network; write 10.0.0.0/8 or 2001:db8::/32", s)
		}
		konst = append(konst, n)
	}
	ip := c.Arg(first)
	return func(env *Env, i int) record.Value {
		v := ip(env, i)
		if v.IsNull() {
			return null
		}
		a, ok := address(env.bytes(v))
		if !ok {
			return null
		}
		a = a.WithZone("")
		for _, n := range konst {
			if n.Contains(a) {
				return record.MakeBool(true)
			}
		}
		unknown := false
		for _, f := range dynamic {
			w := f(env, i)
			if w.IsNull() {
				unknown = true
				continue
			}
			if n, ok := network(env.bytes(w)); !ok {
				unknown = true
			} else if n.Contains(a) {
				return record.MakeBool(true)
			}
		}
		if unknown {
			return null
		}
		return record.MakeBool(false)
	}, nil
}
