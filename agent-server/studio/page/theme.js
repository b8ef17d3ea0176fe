// Runs before the first paint, so that the page does not flash in the wrong colours.
(() => {
  const chosen = localStorage.getItem("agent-studio-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
})();
