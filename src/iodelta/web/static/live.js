// Follows a run. Each line of its journal says that something is new; the page then asks for its changing part, once a
// second at most. When the run ends, the page becomes the report.
"use strict";
(() => {
  const now = document.getElementById("now");
  const address = now.dataset.address;
  const read = async (path) => {
    const answer = await fetch(path, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.statusText);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

  let source = null;
  let busy = false;
  let isNew = false;
  let over = false;

  const become = async () => {
    over = true;
    const page = await read(address);
    document.title = page.title;
    document.body.replaceChildren(...page.body.childNodes);
    const loaded = new Set([...document.scripts].map((one) => one.src));
    for (const { src } of page.head.querySelectorAll("script[src]")) {
      const script = document.createElement("script");
      script.src = src;
      script.async = false;
      if (!loaded.has(script.src)) document.head.append(script);
    }
  };

  const refresh = async () => {
    isNew = true;
    if (busy || over) return;
    busy = true;
    isNew = false;
    try {
      const page = await read(`${address}/now`);
      now.replaceChildren(...page.body.childNodes);
    } catch {
      isNew = true; // the server is away, and may come back
    }
    const known = document.getElementById("known");
    setTimeout(() => {
      busy = false;
      if (known.dataset.state !== "running") become().catch(() => { over = false; refresh(); });
      else if (isNew || "pending" in known.dataset) refresh();
    }, 1000);
  };

  const follow = (line) => {
    source = new EventSource(`${address}/events?after=${line}`);
    source.onmessage = (event) => { line = event.lastEventId; refresh(); };
    // Not closed before: lines may still be on their way when the page knows already that the run is over.
    source.addEventListener("end", (event) => {
      if (JSON.parse(event.data).state !== "running") source.close();
      refresh();
    });
    // A server that was away is asked again by the browser itself, one that has no stream to give is not.
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED && !over) setTimeout(() => { refresh(); follow(line); }, 5000);
    };
  };
  const known = document.getElementById("known");
  follow(known.dataset.line);
  // A judgement that is being made is not announced by a line.
  if ("pending" in known.dataset) refresh();
})();
