import { html, render } from "./lib/html.js";
import { App } from "./views/app.js";

const page = document.querySelector("#page");
page.replaceChildren();
render(html`<${App} />`, page);
