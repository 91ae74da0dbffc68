// Package browser has tests alone. They open the pages that the command makes in a real browser
// without a window, and look what a reader would see. It is a module of its own, so that the
// library needs nothing of a browser.
//
// With HOLDFAST_AXE=axe.min.js, a file of the npm package axe-core, they also check accessibility.
//
// With -screenshots DIR the tests also keep the pictures of docs/screenshots.
package browser
