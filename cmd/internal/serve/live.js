// Shows a run as it grows. All that comes is put in as text.
"use strict";
const show = (id, text) => { document.getElementById(id).textContent = text; };
const source = new EventSource(document.getElementById("live").dataset.events);
source.addEventListener("status", e => show("status", e.data));
source.addEventListener("table", e => show("table", e.data));
source.addEventListener("end", () => source.close());
source.addEventListener("gone", e => {
  source.close();
  show("status", "this file can't be read any more: " + e.data);
});
source.onerror = () => {
  if (source.readyState !== EventSource.CLOSED) show("status", "the connection is lost; trying again");
};
