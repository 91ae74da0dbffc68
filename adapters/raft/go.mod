module github.com/holdfast-go/holdfast/adapters/raft

go 1.25.0

replace github.com/holdfast-go/holdfast => ../..
