// Names for the parts of the theme that have none, and wide tables that the keyboard can scroll.
const label = () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((bar) => {
    bar.setAttribute("aria-label", `Actions of ${bar.parentElement.id}`);
  });
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((table) => {
    table.setAttribute("tabindex", "0");
  });
};
new MutationObserver(label).observe(document.body, { childList: true, subtree: true });
label();
