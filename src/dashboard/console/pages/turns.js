import { duration } from '../format.js';
import { html } from '../html.js';
import { words } from '../words.js';

const text = words.call;

/** What was said, as turns; `name` says who speaks. */
export const Turns = ({ turns, name = text.speaker, ...rest }) => html`
  <ol class="turns" ...${rest}>
    ${turns.map(({ role, content, t, tool_calls: calls = [] }, n) => html`
      <li class="turn ${role}" key=${n}>
        <span class="speaker">${name(role)} ${t !== undefined && duration(t)}</span>
        <p dir="auto">${content}${calls.map((made) => html`<span class="hint" key=${made.id}>${text.calls(made.name)} <code>${JSON.stringify(made.arguments)}</code></span>`)}</p>
      </li>`)}
  </ol>`;
