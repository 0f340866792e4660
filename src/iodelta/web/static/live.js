// Follows a run: asks for the changing part of its page every two seconds. When the run ends, the page becomes the report.
"use strict";
(() => {
  const now = document.getElementById("now");
  const address = now.dataset.address;
  const read = async (path) => {
    const answer = await fetch(path, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.statusText);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

  const become = async () => {
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
    try {
      const page = await read(`${address}/now`);
      now.replaceChildren(...page.body.childNodes);
      if (document.getElementById("known").dataset.state !== "running") return await become();
    } catch { } // the server is away, and may come back
    setTimeout(refresh, 2000);
  };
  setTimeout(refresh, 2000);
})();
