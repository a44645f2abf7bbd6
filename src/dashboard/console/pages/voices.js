import { call, mayWrite, query } from '../api.js';
import { Area, Field, Form, FormDialog } from '../form.js';
import { html, useRef, useState } from '../html.js';
import { count, decimal, duration } from '../format.js';
import { useEvery, useLive } from '../live.js';
import { Badge, Choice, Confirm, Facts, Heading, Loaded, More, Table, Time, useAct, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { Unsaved } from '../unsaved.js';
import { words } from '../words.js';
import { written } from './lines.js';
import { Sending } from './new_voice.js';
import { Samples, check, formOf, sizeOf, useTakes } from './samples.js';
import { Heard, MOST_SAID, useSpeech } from './speech.js';

const text = words.voices;
const TYPES = ['builtin', 'provider', 'cloned'];
const STATUSES = ['pending', 'training', 'ready', 'failed'];
/** Events tell of a training in the environment where the clone was made; the other one asks. */
const ASK_MS = 5_000;

const pathOf = (id, verb = '') => `/voices/${encodeURIComponent(id)}${verb}`;
const isInWork = ({ status }) => status === 'pending' || status === 'training';
const languageOf = ({ language }) => language ?? text.anyLanguage;
const Status = ({ of }) => html`<${Badge} of=${{ ready: 'active', failed: 'failed' }[of] ?? of}>${text.status(of)}<//>`;

export function Voices() {
  const asked = Object.fromEntries(['type', 'status'].map((name) => [name, place.value.query.get(name) ?? '']));
  const pages = usePages((cursor) => call('GET', `/voices${query({ ...asked, cursor, limit: 50 })}`), [asked.type, asked.status]);
  const [speak, sound] = useSpeech();
  const [run, isBusy, error] = useAct();
  const [whom, setWhom] = useState(null);
  const said = useRef(null);
  useLive(({ type }) => type.startsWith('voice_clone.'), pages.reload);
  useEvery(pages.reload, ASK_MS, Boolean(pages.data?.some(isInWork)));
  const hear = (voice) => {
    setWhom(voice);
    run(() => speak(voice, said.current.value));
  };
  const row = (voice) => {
    const { id, name, type, status } = voice;
    const canSpeak = status === 'ready' && mayWrite();
    return {
      key: id,
      cells: [
        html`<a href=${to('voices', id)}>${name}</a>`, text.type(type), languageOf(voice), html`<${Status} of=${status} />`,
        html`${canSpeak && html`<button class="button quiet small" disabled=${isBusy} aria-label=${text.hearOf(name)} onClick=${() => hear(voice)}>${text.hear}</button>`}
          ${sound?.id === id && html`<${Heard} sound=${sound} name=${name} />`}`,
      ],
    };
  };
  const filter = (name, values, label) => html`
    <${Choice} id=${name} label=${text.filters[name]} value=${asked[name]} options=${[['', text.any], ...values.map((value) => [value, label(value)])]}
      onChange=${(value) => go(to('voices', '', { ...asked, [name]: value }), { replace: true })} />`;
  return html`
    <${Heading} title=${text.title} />
    ${mayWrite() && html`<div class="actions left"><a class="button" href=${to('voices', 'new')}>${text.clone}</a></div>`}
    <div class="filters">${filter('type', TYPES, text.type)}${filter('status', STATUSES, text.status)}</div>
    ${mayWrite() && html`
      <div class="field">
        <label for="said">${text.say}</label>
        <input id="said" ref=${said} maxlength=${MOST_SAID} aria-describedby="said-hint" />
        <p class="hint" id="said-hint">${text.sayHint}</p>
      </div>`}
    ${error && html`<p class="error block" role="alert">${text.hearOf(whom.name)}: ${error.message}</p>`}
    <${Loaded} of=${pages}>${(voices) => voices.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${voices.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${text.none}</p>`}<//>`;
}

function Sound({ voice }) {
  const [speak, sound] = useSpeech();
  return html`
    <section class="stack tight" aria-labelledby="sound"><h2 id="sound">${text.sound}</h2>
      <${Form} act=${(values) => speak(voice, values.get('text'))} submit=${text.hear}>
        <${Area} name="text" label=${text.sayOne} hint=${text.sayHint} rows="2" maxlength=${MOST_SAID} />
      <//>
      ${sound && html`<${Heard} sound=${sound} name=${voice.name} />`}
    </section>`;
}

const usageOf = ({ fault, duration_seconds: seconds }) => (fault ? text.unused(text.fault(fault)) : seconds === null ? text.notMeasured : text.used);

const SampleTable = ({ samples }) => samples.length
  ? html`<${Table} label=${text.samples} columns=${Object.values(text.sampleColumns)} rows=${samples.map((sample, n) => ({
      key: n,
      cells: [
        html`<span class="wrap">${sample.file_name}</span>`, sample.duration_seconds === null ? words.none : duration(sample.duration_seconds),
        sizeOf(sample.bytes), sample.loudness_lufs === null ? words.none : text.loudness(decimal(sample.loudness_lufs)), usageOf(sample),
      ],
    }))} />`
  : html`<p class="muted">${text.noSamples}</p>`;

/** What can be done with a clone. Other voices are as they are. */
function Actions({ voice, reload }) {
  const [run, isBusy, error] = useAct();
  const [open, setOpen] = useState('');
  const close = () => setOpen('');
  const { id, name, status } = voice;
  const train = async () => { await call('POST', pathOf(id, '/train'), undefined); await reload(); };
  const rename = async (values) => {
    await call('PATCH', pathOf(id), { name: values.get('name').trim(), language: written(values, 'language') });
    await reload();
  };
  const remove = async () => {
    await call('DELETE', pathOf(id));
    go(to('voices'), { isSure: true });
  };
  return html`
    <div class="actions left">
      ${status === 'failed' && html`<button class="button" disabled=${isBusy} onClick=${() => run(train)}>${text.train}</button>`}
      <button class="button quiet" onClick=${() => setOpen('edit')}>${text.edit}</button>
      ${status !== 'training' && html`<button class="button quiet danger" onClick=${() => setOpen('remove')}>${text.remove}</button>`}
    </div>
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    ${open === 'edit' && html`
      <${FormDialog} title=${text.edit} act=${rename} submit=${words.save} close=${close}>
        <${Field} name="name" label=${text.form.name} defaultValue=${name} required maxlength="100" autocomplete="off" />
        <${Field} name="language" label=${text.form.language} hint=${text.form.languageHint} defaultValue=${voice.language ?? ''} maxlength="35" autocomplete="off" />
      <//>`}
    ${open === 'remove' && html`<${Confirm} asks=${{ ...text.confirmRemove, title: text.confirmRemove.title(name) }} act=${remove} close=${close} />`}`;
}

function AddSamples({ voice, reload }) {
  const samples = useTakes();
  const [isSending, setIsSending] = useState(false);
  const [said, setSaid] = useState('');
  const add = async () => {
    setSaid('');
    check(samples, voice.samples);
    setIsSending(true);
    try {
      await call('POST', pathOf(voice.id, '/samples'), formOf(samples.takes));
      samples.clear();
      setSaid(text.added);
      await reload();
    } finally {
      setIsSending(false);
    }
  };
  return html`
    <section class="stack" aria-labelledby="add"><h2 id="add">${text.add}</h2>
      <p>${text.addHint}</p>
      <${Form} act=${add} submit=${text.upload}>
        <${Samples} of=${samples} />
        ${isSending && html`<${Sending} takes=${samples.takes} />`}
      <//>
      <p class="hint" role="status">${said}</p>
      ${samples.isUnsent && html`<${Unsaved} asks=${text.confirmLeave} />`}
    </section>`;
}

/** What its training has come to. */
const Training = ({ voice: { status, error_code: code, error_message: message } }) => html`
  ${status === 'pending' && html`<p class="notice" role="status">${text.waits}</p>`}
  ${status === 'training' && html`<div class="notice" role="status"><p>${text.trains}</p><progress aria-label=${text.status(status)}></progress></div>`}
  ${status === 'failed' && html`
    <div class="error block" role="alert"><p><strong>${code && text.fault(code)}</strong></p>
      ${message && html`<p class="wrap">${message.replaceAll('`', '')}</p>`}
    </div>`}`;

export function Voice({ id }) {
  const loaded = useLoad(() => call('GET', pathOf(id)), [id]);
  useLive(({ type, data }) => type.startsWith('voice_clone.') && data.voice_id === id, loaded.reload, 1_000);
  useEvery(loaded.reload, ASK_MS, Boolean(loaded.data && isInWork(loaded.data)));
  return html`
    <${Loaded} of=${loaded} isPage>${(voice) => {
      const isClone = voice.type === 'cloned';
      return html`
        <${Heading} title=${voice.name}><${Status} of=${voice.status} /><//>
        <${Training} voice=${voice} />
        ${isClone && mayWrite() && html`<${Actions} voice=${voice} reload=${loaded.reload} />`}
        <${Facts} of=${[
          [text.facts.type, text.type(voice.type)], [text.facts.provider, voice.provider], [text.facts.language, languageOf(voice)],
          [text.facts.samples, isClone ? count(voice.samples) : null],
          [text.facts.consent, isClone ? voice.consent?.speaker_name ?? text.noProof : null],
          [text.facts.watermark, voice.type === 'builtin' ? null : voice.watermark ? text.hasWatermark : text.noWatermark],
          [text.facts.created, voice.created_at && html`<${Time} of=${voice.created_at} />`],
          [text.facts.ready, voice.ready_at && html`<${Time} of=${voice.ready_at} />`],
          [text.facts.id, html`<code class="wrap">${voice.id}</code>`],
        ]} />
        ${voice.status === 'ready' && mayWrite() && html`<${Sound} voice=${voice} />`}
        ${isClone && html`<section class="stack tight"><h2>${text.samples}</h2><${SampleTable} samples=${voice.sample_details ?? []} /></section>`}
        ${isClone && voice.status === 'failed' && mayWrite() && html`<${AddSamples} voice=${voice} reload=${loaded.reload} />`}`;
    }}<//>`;
}
