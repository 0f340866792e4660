// What is dropped on the page goes where its form would send it: files with their paths in the folder they came from.
"use strict";
(() => {
  const form = document.querySelector("form.dropped");
  const status = form.querySelector("[role=status]");

  const entries = (folder) => new Promise((done, failed) => {
    const reader = folder.createReader();
    const all = [];
    const more = () => reader.readEntries((some) => {
      all.push(...some);
      if (some.length) more(); else done(all);
    }, failed);
    more();
  });

  const collect = async (entry, files) => {
    if (entry.isFile) {
      const file = await new Promise((done, failed) => { entry.file(done, failed); });
      files.push([file, entry.fullPath.slice(1)]);
      return;
    }
    for (const one of await entries(entry)) await collect(one, files);
  };

  const send = async (files) => {
    status.textContent = `Sending ${files.length} ${files.length === 1 ? "file" : "files"}`;
    const fields = new FormData();
    for (const name of ["csrf", "with"]) if (form.elements[name]) fields.append(name, form.elements[name].value);
    for (const [file, path] of files) fields.append("files", file, path);
    const answer = await fetch(form.action, { method: "POST", body: fields, headers: { Accept: "text/html" } });
    if (answer.redirected) window.location.assign(answer.url);
    else status.textContent = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("h1").textContent;
  };

  document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("over"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("over"); });
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    document.body.classList.remove("over");
    // All at once: what was dropped can be asked for in this event alone.
    const dropped = [...event.dataTransfer.items].filter((item) => item.kind === "file")
      .map((item) => [item.webkitGetAsEntry(), item.getAsFile()]);
    const files = [];
    try {
      for (const [entry, file] of dropped) {
        if (entry) await collect(entry, files); else files.push([file, file.name]);
      }
      if (files.length) await send(files);
    } catch (error) {
      status.textContent = `This could not be sent: ${error.message}`;
    }
  });
})();
