package zerocopy

import "github.com/holdfast-go/holdfast/cmd/internal/measure/study"

// The arms that the claims take.
var wholeSocket, pieceSocket, sendfileSocket = zeroSocket(wholeFile), zeroSocket(pieces64), zeroSocket(bySendfile)

// zeroClaims are the page's claims about its two figures.
var zeroClaims = []study.Claim{
	{
		Name: "zerocopy-sendfile", Says: "to send a file with sendfile takes half the time of read and send",
		Published: "7.18 s, 3.71 s for 10 GiB",
		Over:      wholeSocket, Under: sendfileSocket, Allows: halved(),
		Holds: "its program, which reads the whole file first, takes about twice as long",
		Not:   "its program takes another multiple of sendfile's time here",
	},
	// The way that makes the same copies and does nothing else that
	// costs: a loop with a buffer that stays in the CPU's cache.
	{
		Name: "zerocopy-copies", Says: "the time halves because 2 of 4 copies are saved",
		Published: "4 copies, 2 copies",
		Over:      pieceSocket, Under: sendfileSocket, Allows: halved(),
		Holds: "read and write of 64 KiB, with as many copies, take about twice as long too",
		Not:   "read and write of 64 KiB make as many copies, and take another multiple: its program also waits for the whole file and fills new memory with it",
	},
	// Of the sender alone: what the receiver does is the same.
	{
		Name: "zerocopy-useless-copies", Says: "two of the sender's copies are useless, and sendfile saves them",
		Over: pieceSocket, Under: sendfileSocket, By: cpuAMiB(toldCPU), Allows: study.AtLeast(1.5),
		Holds: "a sender that copies takes this many times the CPU time for a byte",
		Not:   "the sender takes about as much CPU time without them",
	},
}

// halved is the document's "roughly half".
func halved() study.Span { return study.About(publishedReadSend/publishedSendfile, 1.25) }
