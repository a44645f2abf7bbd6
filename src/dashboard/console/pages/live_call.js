// What can be done with a call while it lasts.
import { call } from '../api.js';
import { html, useId, useState } from '../html.js';
import { Confirm, useAct, useLoad } from '../parts.js';
import { words } from '../words.js';
import { agentIn } from './call_facts.js';

const text = words.call;

/** One field and one button, which may be pressed again and again. What is wrong is said at the field. */
function Tell({ act, asks: { label, hint, button, done }, ...rest }) {
  const id = useId();
  const [run, busy, error] = useAct();
  const [said, setSaid] = useState('');
  const submit = async (event) => {
    event.preventDefault();
    const form = event.target;
    setSaid('');
    if (await run(() => act(new FormData(form).get('it').trim()))) {
      form.reset();
      setSaid(done);
    }
  };
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ') || undefined;
  return html`
    <form class="field" onSubmit=${submit}>
      <label for=${id}>${label}</label>
      <div class="with-button">
        <input id=${id} name="it" autocomplete="off" aria-describedby=${described} aria-invalid=${error ? 'true' : undefined} ...${rest} />
        <button class="button quiet" disabled=${busy}>${button}</button>
      </div>
      ${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
      ${error && html`<p class="error" id="${id}-error" role="alert">${error.message}</p>`}
      <p class="hint" role="status">${said}</p>
    </form>`;
}

export function LiveTools({ session, agent }) {
  const { id, phase } = session;
  const [asks, setAsks] = useState(false);
  const post = (verb, body) => call('POST', `/sessions/${id}/${verb}`, body);
  const { data: its } = useLoad(() => agentIn(session, agent), [id]);
  const own = its?.transfer?.number;
  const transfer = { ...text.transfer, hint: own ? `${text.transfer.hint}. ${text.transfer.own(own)}` : text.transfer.hint };
  return html`
    <section class="stack panel tools" aria-labelledby="tools">
      <h2 id="tools">${text.liveTools}</h2>
      ${phase === 'conversing' ? html`
        <${Tell} asks=${text.say} act=${(said) => post('say', { text: said })} required maxlength="1000" />
        <${Tell} asks=${transfer} act=${(number) => post('transfer', number ? { transfer_number: number } : {})} type="tel" required=${!own} maxlength="50" />
        <${Tell} asks=${text.keys} act=${(digits) => post('dtmf', { digits })} required maxlength="32" inputmode="tel" />`
      : html`<p class="muted">${text.notTalking}</p>`}
      <div class="actions left"><button class="button danger" onClick=${() => setAsks(true)}>${text.end}</button></div>
      ${asks && html`<${Confirm} asks=${text.confirmEnd} act=${() => post('end')} close=${() => setAsks(false)} />`}
    </section>`;
}
