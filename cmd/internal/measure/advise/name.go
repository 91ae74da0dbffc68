package advise

import "github.com/holdfast-go/holdfast"

// Name returns the short name of a policy, such as durable or periodic=1s, which
// [holdfast.ParsePolicy] reads too. For a policy without a name it returns the policy's text.
func Name(p holdfast.Policy) string {
	switch p {
	case holdfast.Unbuffered():
		return "unbuffered"
	case holdfast.Durable():
		return "durable"
	case holdfast.EachDurable():
		return "eachdurable"
	case holdfast.Buffered(p.Buffer):
		return "buffered=" + p.Buffer.String()
	case holdfast.Periodic(p.Sync.Every):
		return "periodic=" + p.Sync.Every.String()
	}
	return p.String()
}
