package pebble
import ("testing";"os";"runtime";"strings";"fmt";"github.com/rsetl/rsetl/state/statetest";"github.com/rsetl/rsetl/state";"github.com/rsetl/rsetl/record")
func rss() string { p,_:=os.ReadFile("/proc/self/status"); for _,l:=range strings.Split(string(p),"\n"){ if strings.HasPrefix(l,"VmRSS"){return l} }; return "" }
func TestZZ(t *testing.T) {
 var m runtime.MemStats
 show := func(w string){ runtime.GC(); runtime.ReadMemStats(&m); fmt.Println(w, "heap", m.HeapAlloc>>10, "KiB sys", m.Sys>>10, rss()) }
 show("before")
 s := open(t, t.TempDir(), Options{})
 show("open")
 for p := range 50 { statetest.Commit(t, s, fmt.Sprint("p",p), manySplits(200)) }
 for i := range int64(200) { for p := range 50 { c:=manySplits(200); c.Splits=nil; for id := range c.Positions { c.Positions[id]=state.Advance{To: record.Position{Offset:i}} }; statetest.Commit(t, s, fmt.Sprint("p",p), c) } }
 show("10000 commits")
 s.Close(); show("closed")
}
