module github.com/holdfast-go/holdfast/cmd/dev/browser

go 1.26.0

replace (
	github.com/holdfast-go/holdfast => ../..
	github.com/holdfast-go/holdfast/cmd => ../../cmd
)

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/holdfast-go/holdfast v0.1.0
	github.com/holdfast-go/holdfast/cmd v0.0.0
	github.com/ledongthuc/pdf v0.0.0-20260907135840-6c8c28e0e8a0
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
