package date

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// written are the names of months and days as CLDR has them within dates: short months, months, short days, days from Monday.
var written = map[string][4]string{
	"cs": {"led|úno|bře|dub|kvě|čvn|čvc|srp|zář|říj|lis|pro", "ledna|února|března|dubna|května|června|července|srpna|září|října|listopadu|prosince", "po|út|st|čt|pá|so|ne", "pondělí|úterý|středa|čtvrtek|pátek|sobota|neděle"},
	"da": {"jan.|feb.|mar.|apr.|maj|jun.|jul.|aug.|sep.|okt.|nov.|dec.", "januar|februar|marts|april|maj|juni|juli|august|september|oktober|november|december", "man.|tir.|ons.|tor.|fre.|lør.|søn.", "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag"},
	"de": {"Jan.|Feb.|März|Apr.|Mai|Juni|Juli|Aug.|Sept.|Okt.|Nov.|Dez.", "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember", "Mo.|Di.|Mi.|Do.|Fr.|Sa.|So.", "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag"},
	"el": {"Ιαν|Φεβ|Μαρ|Απρ|Μαΐ|Ιουν|Ιουλ|Αυγ|Σεπ|Οκτ|Νοε|Δεκ", "Ιανουαρίου|Φεβρουαρίου|Μαρτίου|Απριλίου|Μαΐου|Ιουνίου|Ιουλίου|Αυγούστου|Σεπτεμβρίου|Οκτωβρίου|Νοεμβρίου|Δεκεμβρίου", "Δευ|Τρί|Τετ|Πέμ|Παρ|Σάβ|Κυρ", "Δευτέρα|Τρίτη|Τετάρτη|Πέμπτη|Παρασκευή|Σάββατο|Κυριακή"},
	"es": {"ene|feb|mar|abr|may|jun|jul|ago|sept|oct|nov|dic", "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre", "lun|mar|mié|jue|vie|sáb|dom", "lunes|martes|miércoles|jueves|viernes|sábado|domingo"},
	"fi": {"tammik.|helmik.|maalisk.|huhtik.|toukok.|kesäk.|heinäk.|elok.|syysk.|lokak.|marrask.|jouluk.", "tammikuuta|helmikuuta|maaliskuuta|huhtikuuta|toukokuuta|kesäkuuta|heinäkuuta|elokuuta|syyskuuta|lokakuuta|marraskuuta|joulukuuta", "ma|ti|ke|to|pe|la|su", "maanantaina|tiistaina|keskiviikkona|torstaina|perjantaina|lauantaina|sunnuntaina"},
	"fr": {"janv.|févr.|mars|avr.|mai|juin|juil.|août|sept.|oct.|nov.|déc.", "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre", "lun.|mar.|mer.|jeu.|ven.|sam.|dim.", "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"},
	"hu": {"jan.|febr.|márc.|ápr.|máj.|jún.|júl.|aug.|szept.|okt.|nov.|dec.", "január|február|március|április|május|június|július|augusztus|szeptember|október|november|december", "H|K|Sze|Cs|P|Szo|V", "hétfő|kedd|szerda|csütörtök|péntek|szombat|vasárnap"},
	"id": {"Jan|Feb|Mar|Apr|Mei|Jun|Jul|Agu|Sep|Okt|Nov|Des", "Januari|Februari|Maret|April|Mei|Juni|Juli|Agustus|September|Oktober|November|Desember", "Sen|Sel|Rab|Kam|Jum|Sab|Min", "Senin|Selasa|Rabu|Kamis|Jumat|Sabtu|Minggu"},
	"it": {"gen|feb|mar|apr|mag|giu|lug|ago|set|ott|nov|dic", "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre", "lun|mar|mer|gio|ven|sab|dom", "lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica"},
	"ja": {"1月|2月|3月|4月|5月|6月|7月|8月|9月|10月|11月|12月", "1月|2月|3月|4月|5月|6月|7月|8月|9月|10月|11月|12月", "月|火|水|木|金|土|日", "月曜日|火曜日|水曜日|木曜日|金曜日|土曜日|日曜日"},
	"ko": {"1월|2월|3월|4월|5월|6월|7월|8월|9월|10월|11월|12월", "1월|2월|3월|4월|5월|6월|7월|8월|9월|10월|11월|12월", "월|화|수|목|금|토|일", "월요일|화요일|수요일|목요일|금요일|토요일|일요일"},
	"nb": {"jan.|feb.|mar.|apr.|mai|jun.|jul.|aug.|sep.|okt.|nov.|des.", "januar|februar|mars|april|mai|juni|juli|august|september|oktober|november|desember", "man.|tir.|ons.|tor.|fre.|lør.|søn.", "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag"},
	"nl": {"jan.|feb.|mrt.|apr.|mei|jun.|jul.|aug.|sep.|okt.|nov.|dec.", "januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december", "ma|di|wo|do|vr|za|zo", "maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag"},
	"pl": {"sty|lut|mar|kwi|maj|cze|lip|sie|wrz|paź|lis|gru", "stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|września|października|listopada|grudnia", "pon.|wt.|śr.|czw.|pt.|sob.|niedz.", "poniedziałek|wtorek|środa|czwartek|piątek|sobota|niedziela"},
	"pt": {"jan.|fev.|mar.|abr.|mai.|jun.|jul.|ago.|set.|out.|nov.|dez.", "janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro", "seg.|ter.|qua.|qui.|sex.|sáb.|dom.", "segunda-feira|terça-feira|quarta-feira|quinta-feira|sexta-feira|sábado|domingo"},
	"ro": {"ian.|feb.|mar.|apr.|mai|iun.|iul.|aug.|sept.|oct.|nov.|dec.", "ianuarie|februarie|martie|aprilie|mai|iunie|iulie|august|septembrie|octombrie|noiembrie|decembrie", "lun.|mar.|mie.|joi|vin.|sâm.|dum.", "luni|marți|miercuri|joi|vineri|sâmbătă|duminică"},
	"ru": {"янв.|февр.|мар.|апр.|мая|июн.|июл.|авг.|сент.|окт.|нояб.|дек.", "января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря", "пн|вт|ср|чт|пт|сб|вс", "понедельник|вторник|среда|четверг|пятница|суббота|воскресенье"},
	"sv": {"jan.|feb.|mars|apr.|maj|juni|juli|aug.|sep.|okt.|nov.|dec.", "januari|februari|mars|april|maj|juni|juli|augusti|september|oktober|november|december", "mån|tis|ons|tors|fre|lör|sön", "måndag|tisdag|onsdag|torsdag|fredag|lördag|söndag"},
	"tr": {"Oca|Şub|Mar|Nis|May|Haz|Tem|Ağu|Eyl|Eki|Kas|Ara", "Ocak|Şubat|Mart|Nisan|Mayıs|Haziran|Temmuz|Ağustos|Eylül|Ekim|Kasım|Aralık", "Pzt|Sal|Çar|Per|Cum|Cmt|Paz", "Pazartesi|Salı|Çarşamba|Perşembe|Cuma|Cumartesi|Pazar"},
	"uk": {"січ.|лют.|бер.|квіт.|трав.|черв.|лип.|серп.|вер.|жовт.|лист.|груд.", "січня|лютого|березня|квітня|травня|червня|липня|серпня|вересня|жовтня|листопада|грудня", "пн|вт|ср|чт|пт|сб|нд", "понеділок|вівторок|середа|четвер|пʼятниця|субота|неділя"},
	"zh": {"1月|2月|3月|4月|5月|6月|7月|8月|9月|10月|11月|12月", "一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月", "周一|周二|周三|周四|周五|周六|周日", "星期一|星期二|星期三|星期四|星期五|星期六|星期日"},
}

// forms are a name's spellings: as it is written, in small letters and in capitals; short and long.
func forms(short, long string) [][]string {
	s, l := strings.Split(short, "|"), strings.Split(long, "|")
	out := make([][]string, len(s))
	for i := range s {
		out[i] = []string{l[i], strings.ToLower(l[i]), strings.ToUpper(l[i]), s[i], strings.ToLower(s[i]), strings.ToUpper(s[i])}
	}
	return out
}

// exact finds the longest of the spellings at the beginning of p. n is 0 where there is none.
func exact(p []byte, names [][]string) (index, n int) {
	for i, all := range names {
		for _, s := range all {
			if len(s) > n && len(p) >= len(s) && string(p[:len(s)]) == s {
				index, n = i, len(s)
			}
		}
	}
	if n > 0 && n < len(p) { // `mai` is not the beginning of `maio`
		last, _ := utf8.DecodeLastRune(p[:n])
		next, _ := utf8.DecodeRune(p[n:])
		if unicode.IsLetter(last) && unicode.IsLetter(next) && !unicode.Is(unicode.Han, last) && !unicode.Is(unicode.Hangul, last) {
			return 0, 0
		}
	}
	return index, n
}

// name reads a month's or a day's name at the beginning of p; n is 0 where there is none.
func (o *op) name(p []byte, month bool) (index, n int) {
	switch {
	case o.names != nil && o.loose && month:
		return find(p, o.names.months)
	case o.names != nil && o.loose:
		return find(p, o.names.days)
	case o.names != nil && month:
		return exact(p, o.names.writtenMonths)
	case o.names != nil:
		return exact(p, o.names.writtenDays)
	case month:
		index, n = name(p, monthNames[:])
	default:
		index, n = name(p, dayNames[:])
	}
	if n == 0 || o.loose {
		return index, n
	}
	for i := 1; i < n; i++ {
		if i > 1 && (p[i]^p[1])&0x20 != 0 {
			return 0, 0
		}
	}
	if mixed(p[0], p[1], p[2]) || n == 4 && index == 8 && month { // Sept
		return 0, 0
	}
	return index, n
}
