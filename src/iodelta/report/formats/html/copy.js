// Puts a button at every block of commands. Without scripts, or on paper, there is none: the text can still be selected.
"use strict";
(() => {
  const select = (block) => {
    const range = document.createRange();
    range.selectNodeContents(block);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };

  // Where the browser gives a file no clipboard, the commands are selected, ready for the keyboard.
  const copy = async (block, button) => {
    try {
      await navigator.clipboard.writeText(block.textContent.trim());
      button.textContent = "Copied";
    } catch {
      select(block);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };

  for (const block of document.querySelectorAll("pre.commands")) {
    const frame = document.createElement("div");
    frame.className = "copied";
    block.before(frame);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", () => copy(block, button));
    frame.append(block, button);
  }
})();
