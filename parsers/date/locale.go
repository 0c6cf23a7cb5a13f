package date

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// locale is a language's names, in small letters, as dates have them. A name that has several forms has them with | between.
type locale struct {
	months, days, halves []string

	writtenMonths, writtenDays [][]string // every spelling that is read where not lenient
}

func words(s string) []string { return strings.Fields(s) }

// locales are the languages by their ISO 639 code, English excepted. Weeks begin with Monday.
var locales = map[string]*locale{
	"cs": {months: words("ledna|leden února|únor března|březen dubna|duben května|květen června|červen července|červenec srpna|srpen září října|říjen listopadu|listopad prosince|prosinec"), days: words("pondělí|po úterý|út středa|st čtvrtek|čt pátek|pá sobota|so neděle|ne"), halves: words("dop odp")},
	"da": {months: words("januar februar marts april maj juni juli august september oktober november december"), days: words("mandag tirsdag onsdag torsdag fredag lørdag søndag"), halves: nil},
	"de": {months: words("januar|jänner februar märz|mrz april mai juni juli august september oktober november dezember"), days: words("montag|mo dienstag|di mittwoch|mi donnerstag|do freitag|fr samstag|sa|sonnabend sonntag|so"), halves: nil},
	"el": {months: words("ιανουαρίου|ιανουάριος φεβρουαρίου|φεβρουάριος μαρτίου|μάρτιος|μαΐρ απριλίου|απρίλιος μαΐου|μάιος|μαΐ ιουνίου|ιούνιος ιουλίου|ιούλιος αυγούστου|αύγουστος σεπτεμβρίου|σεπτέμβριος οκτωβρίου|οκτώβριος νοεμβρίου|νοέμβριος δεκεμβρίου|δεκέμβριος"), days: words("δευτέρα τρίτη τετάρτη πέμπτη παρασκευή σάββατο κυριακή"), halves: words("π.μ. μ.μ.")},
	"es": {months: words("enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre"), days: words("lunes martes miércoles jueves viernes sábado domingo"), halves: nil},
	"fi": {months: words("tammikuuta|tammikuu helmikuuta|helmikuu maaliskuuta|maaliskuu huhtikuuta|huhtikuu toukokuuta|toukokuu kesäkuuta|kesäkuu heinäkuuta|heinäkuu elokuuta|elokuu syyskuuta|syyskuu lokakuuta|lokakuu marraskuuta|marraskuu joulukuuta|joulukuu"), days: words("maanantai|ma tiistai|ti keskiviikko|ke torstai|to perjantai|pe lauantai|la sunnuntai|su"), halves: words("ap ip")},
	"fr": {months: words("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"), days: words("lundi mardi mercredi jeudi vendredi samedi dimanche"), halves: nil},
	"hu": {months: words("január február március április május június július augusztus szeptember október november december"), days: words("hétfő|h kedd|k szerda|sze csütörtök|cs péntek|p szombat|szo vasárnap|v"), halves: words("de du")},
	"id": {months: words("januari februari maret april mei juni juli agustus september oktober november desember"), days: words("senin selasa rabu kamis jumat sabtu minggu"), halves: nil},
	"it": {months: words("gennaio febbraio marzo aprile maggio|mag giugno luglio agosto settembre|set ottobre novembre dicembre"), days: words("lunedì martedì mercoledì giovedì venerdì sabato domenica"), halves: nil},
	"ja": {months: words("1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月"), days: words("月曜日|月 火曜日|火 水曜日|水 木曜日|木 金曜日|金 土曜日|土 日曜日|日"), halves: words("午前 午後")},
	"ko": {months: words("1월 2월 3월 4월 5월 6월 7월 8월 9월 10월 11월 12월"), days: words("월요일|월 화요일|화 수요일|수 목요일|목 금요일|금 토요일|토 일요일|일"), halves: words("오전 오후")},
	"nb": {months: words("januar februar mars april mai juni juli august september oktober november desember"), days: words("mandag tirsdag onsdag torsdag fredag lørdag søndag"), halves: nil},
	"nl": {months: words("januari februari maart|mrt april mei juni juli augustus september oktober november december"), days: words("maandag|ma dinsdag|di woensdag|wo donderdag|do vrijdag|vr zaterdag|za zondag|zo"), halves: nil},
	"pl": {months: words("stycznia|styczeń lutego|luty marca|marzec kwietnia|kwiecień maja|maj czerwca|czerwiec lipca|lipiec sierpnia|sierpień września|wrzesień października|październik listopada|listopad grudnia|grudzień"), days: words("poniedziałek|pon wtorek|wt środa|śr czwartek|czw piątek|pt sobota|sob niedziela|nd"), halves: nil},
	"pt": {months: words("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"), days: words("segunda-feira|segunda terça-feira|terça quarta-feira|quarta quinta-feira|quinta sexta-feira|sexta sábado domingo"), halves: nil},
	"ro": {months: words("ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie|noi decembrie"), days: words("luni marți miercuri joi vineri sâmbătă duminică"), halves: nil},
	"ru": {months: words("января|январь февраля|февраль марта|март апреля|апрель мая|май июня|июнь июля|июль августа|август сентября|сентябрь октября|октябрь ноября|ноябрь декабря|декабрь"), days: words("понедельник|пн вторник|вт среда|ср четверг|чт пятница|пт суббота|сб воскресенье|вс"), halves: nil},
	"sv": {months: words("januari februari mars april maj juni juli augusti september oktober november december"), days: words("måndag tisdag onsdag torsdag fredag lördag söndag"), halves: words("fm em")},
	"tr": {months: words("ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık"), days: words("pazartesi|pzt salı çarşamba perşembe cuma cumartesi|cmt pazar"), halves: words("öö ös")},
	"uk": {months: words("січня|січень лютого|лютий березня|березень квітня|квітень травня|травень червня|червень липня|липень серпня|серпень вересня|вересень жовтня|жовтень листопада|листопад грудня|грудень"), days: words("понеділок|пн вівторок|вт середа|ср четвер|чт пʼятниця|пт субота|сб неділя|нд"), halves: words("дп пп")},
	"zh": {months: words("1月|一月 2月|二月 3月|三月 4月|四月 5月|五月 6月|六月 7月|七月 8月|八月 9月|九月 10月|十月 11月|十一月 12月|十二月"), days: words("星期一|周一 星期二|周二 星期三|周三 星期四|周四 星期五|周五 星期六|周六 星期日|周日"), halves: words("上午 下午")},
}

// localeOf finds a language by a name such as fr, fr-FR or fr_FR.utf8; nil is English.
func localeOf(name string) (*locale, error) {
	lang := strings.ToLower(name)
	if i := strings.IndexAny(lang, "-_."); i > 0 {
		lang = lang[:i]
	}
	switch lang {
	case "en", "c", "posix", "root", "und":
		return nil, nil
	case "no", "nn":
		lang = "nb"
	}
	if l, ok := locales[lang]; ok {
		with, w := *l, written[lang]
		with.writtenMonths, with.writtenDays = forms(w[0], w[1]), forms(w[2], w[3])
		return &with, nil
	}
	known := []string{"en"}
	for k := range locales {
		known = append(known, k)
	}
	slices.Sort(known)
	return nil, fmt.Errorf("the language %q has no names of months here; known are %s", name, strings.Join(known, ", "))
}

// find reads a name at the beginning of p, in any case of letters: whole, or shortened to at least three letters, with a
// point behind it or without. n is its length in bytes, 0 where there is none, or where it is short for several.
func find(p []byte, names []string) (index, n int) {
	var fold [64]byte
	text := fold[:0]
	ends := [64]int{} // where in p the folded text's bytes end
	for i := 0; i < len(p) && len(text) < 56; {
		r, w := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '-' && r != '\'' && r != '’' && r != '.' {
			break
		}
		from := len(text)
		text = utf8.AppendRune(text, unicode.ToLower(r))
		i += w
		for k := from; k < len(text); k++ {
			ends[k] = i
		}
	}
	// The longest whole name.
	for i, all := range names {
		for len(all) > 0 {
			name := all
			if k := strings.IndexByte(all, '|'); k >= 0 {
				name, all = all[:k], all[k+1:]
			} else {
				all = ""
			}
			if len(name) <= len(text) && string(text[:len(name)]) == name && ends[len(name)-1] > n && !letterAt(text, len(name), name) {
				index, n = i, ends[len(name)-1]
			}
		}
	}
	if n == 0 { // a shortened one
		l := 0
		for l < len(text) && text[l] != '.' && text[l] != '-' {
			l++
		}
		if utf8.RuneCount(text[:l]) < 3 {
			return 0, 0
		}
		hits := 0
		for i, all := range names {
			for _, name := range strings.Split(all, "|") {
				if strings.HasPrefix(name, string(text[:l])) {
					hits++
					index = i
					break
				}
			}
		}
		if hits != 1 {
			return 0, 0
		}
		n = ends[l-1]
	}
	if n < len(p) && p[n] == '.' {
		n++
	}
	return index, n
}

// letterAt tells whether a name goes on behind its end: `maio` is no `mai`. Names that end in a digit or an ideograph don't.
func letterAt(text []byte, at int, name string) bool {
	if at >= len(text) {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(name)
	r, _ := utf8.DecodeRune(text[at:])
	return unicode.IsLetter(r) && !unicode.Is(unicode.Han, last) && !unicode.Is(unicode.Hangul, last)
}
