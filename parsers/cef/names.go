package cef

// fullNames are the dictionary's names of the extension's short keys (ArcSight's Common Event Format, version 0.1).
var fullNames = map[string]string{
	"act": "deviceAction", "agt": "agentAddress", "ahost": "agentHostName", "aid": "agentId",
	"amac": "agentMacAddress", "app": "applicationProtocol", "art": "agentReceiptTime", "at": "agentType",
	"atz": "agentTimeZone", "av": "agentVersion", "c6a1": "deviceCustomIPv6Address1", "c6a1Label": "deviceCustomIPv6Address1Label",
	"c6a2": "deviceCustomIPv6Address2", "c6a2Label": "deviceCustomIPv6Address2Label", "c6a3": "deviceCustomIPv6Address3", "c6a3Label": "deviceCustomIPv6Address3Label",
	"c6a4": "deviceCustomIPv6Address4", "c6a4Label": "deviceCustomIPv6Address4Label", "cat": "deviceEventCategory", "cfp1": "deviceCustomFloatingPoint1",
	"cfp1Label": "deviceCustomFloatingPoint1Label", "cfp2": "deviceCustomFloatingPoint2", "cfp2Label": "deviceCustomFloatingPoint2Label", "cfp3": "deviceCustomFloatingPoint3",
	"cfp3Label": "deviceCustomFloatingPoint3Label", "cfp4": "deviceCustomFloatingPoint4", "cfp4Label": "deviceCustomFloatingPoint4Label", "cn1": "deviceCustomNumber1",
	"cn1Label": "deviceCustomNumber1Label", "cn2": "deviceCustomNumber2", "cn2Label": "deviceCustomNumber2Label", "cn3": "deviceCustomNumber3",
	"cn3Label": "deviceCustomNumber3Label", "cnt": "baseEventCount", "cs1": "deviceCustomString1", "cs1Label": "deviceCustomString1Label",
	"cs2": "deviceCustomString2", "cs2Label": "deviceCustomString2Label", "cs3": "deviceCustomString3", "cs3Label": "deviceCustomString3Label",
	"cs4": "deviceCustomString4", "cs4Label": "deviceCustomString4Label", "cs5": "deviceCustomString5", "cs5Label": "deviceCustomString5Label",
	"cs6": "deviceCustomString6", "cs6Label": "deviceCustomString6Label", "dhost": "destinationHostName", "dlat": "destinationGeoLatitude",
	"dlong": "destinationGeoLongitude", "dmac": "destinationMacAddress", "dntdom": "destinationNtDomain", "dpid": "destinationProcessId",
	"dpriv": "destinationUserPrivileges", "dproc": "destinationProcessName", "dpt": "destinationPort", "dst": "destinationAddress",
	"dtz": "deviceTimeZone", "duid": "destinationUserId", "duser": "destinationUserName", "dvc": "deviceAddress",
	"dvchost": "deviceHostName", "dvcmac": "deviceMacAddress", "dvcpid": "deviceProcessId", "end": "endTime",
	"fname": "fileName", "fsize": "fileSize", "in": "bytesIn", "mrt": "managerReceiptTime",
	"msg": "message", "out": "bytesOut", "outcome": "eventOutcome", "proto": "transportProtocol",
	"request": "requestUrl", "rt": "deviceReceiptTime", "shost": "sourceHostName", "slat": "sourceGeoLatitude",
	"slong": "sourceGeoLongitude", "smac": "sourceMacAddress", "sntdom": "sourceNtDomain", "spid": "sourceProcessId",
	"spriv": "sourceUserPrivileges", "sproc": "sourceProcessName", "spt": "sourcePort", "src": "sourceAddress",
	"start": "startTime", "suid": "sourceUserId", "suser": "sourceUserName",
}
