// Safe HTML from Markdown of models and users.
import { Marked } from "../vendor/marked/marked.js";

const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // The page's policy loads nothing from elsewhere: an image becomes a link.
    image: ({ href, text }) => (/^data:image\/(png|jpeg|gif|webp);/.test(href) ? `<img src="${escaped(href)}" alt="${escaped(text)}">` : `<a href="${escaped(href)}">${escaped(text || href)}</a>`),
    code: ({ text, lang }) => {
      const language = /^[\w+#.-]{1,20}/.exec(lang ?? "")?.[0] ?? "";
      const caption = `<span>${escaped(language || "text")}</span><button type="button" class="bare" data-copy>Copy</button>`;
      return `<figure class="code"><figcaption>${caption}</figcaption><pre tabindex="0"><code>${escaped(text)}</code></pre></figure>`;
    },
    // HTML in the source is shown as text.
    html: ({ text }) => escaped(text),
  },
});

/** Returns HTML before sanitising. */
export const rendered = (text) => marked.parse(text);

const rules = {
  USE_PROFILES: { html: true },
  FORBID_TAGS: ["style", "form", "input", "textarea", "select", "option", "iframe", "video", "audio", "object"],
  FORBID_ATTR: ["style", "id", "name", "srcset", "background", "poster"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#|data:image\/(?:png|jpeg|gif|webp);)/i,
  ADD_ATTR: ["data-copy", "tabindex"],
};

/** Returns sanitised HTML; `purify` is DOMPurify for the page's window. */
export function clean(purify, text) {
  return purify.sanitize(rendered(text), rules);
}

/** Links open in a new page without access to this one. */
export function hardenLinks(purify) {
  purify.addHook("afterSanitizeAttributes", (node) => {
    if (node.tagName === "A" && node.hasAttribute("href")) {
      node.setAttribute("target", "_blank");
      node.setAttribute("rel", "noopener noreferrer nofollow");
    }
  });
}
