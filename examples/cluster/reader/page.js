// The page is fetched again when the log has grown.
let busy = false;
new EventSource("/live").onmessage = async () => {
  if (busy || document.hidden) return;
  busy = true;
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    if (next) document.querySelector("main").replaceWith(next);
  } catch { // the next one comes
  } finally {
    busy = false;
  }
};
