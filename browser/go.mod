module github.com/holdfast-go/holdfast/browser

go 1.26.0

replace github.com/holdfast-go/holdfast => ../
