// The form of an agent: every field of it, in groups. Fields have the names that the API gives them in its errors.
import { Area, Check, Checks, Field, Select } from '../form.js';
import { html, useState } from '../html.js';
import { useAct } from '../parts.js';
import { to } from '../place.js';
import { Rows } from '../rows.js';
import { words } from '../words.js';
import { Heard, MOST_SAID, useSpeech } from './speech.js';

const text = words.agents;
const LANGUAGES = ['en-US', 'en-GB', 'de-DE', 'fr-FR', 'es-ES', 'it-IT', 'pt-BR', 'nl-NL', 'pl-PL', 'tr-TR'];
const TOOLS = ['end_call', 'transfer_call', 'set_disposition', 'record_answer'];
const KEYS = ['0', '3', '4', '5', '6', '7', '8', '9', '*', '#'];

/** What a field is called and what is said below it. */
function about(name) {
  const path = name.replace(/\[\d+\]/g, '[]');
  return { name, label: text.label[path], hint: text.hint[path] };
}

const options = (named, values) => values.map((value) => [value, named(value)]);
const Words = ({ name, value, ...rest }) => html`<${Field} ...${about(name)} defaultValue=${value ?? ''} ...${rest} />`;
const Long = ({ name, value, ...rest }) => html`<${Area} ...${about(name)} defaultValue=${value ?? ''} ...${rest} />`;
const Lines = ({ value, ...rest }) => html`<${Long} value=${value.join('\n')} ...${rest} />`;
const Count = ({ name, value, min, max, ...rest }) => html`
  <${Words} name=${name} value=${value} type="number" inputmode="decimal" min=${min} max=${max} step="1" ...${rest} />`;
const Box = ({ name, value }) => html`<${Check} ...${about(name)} defaultChecked=${value} />`;
const Choose = ({ name, value, named, of, ...rest }) => html`<${Select} ...${about(name)} options=${options(named, of)} defaultValue=${value} ...${rest} />`;

const Group = ({ title, note = '', isOpen = false, children }) => html`
  <details class="group panel" open=${isOpen}>
    <summary><h2>${title}</h2></summary>
    <div class="stack">${note && html`<p class="hint">${note}</p>`}${children}</div>
  </details>`;

/** The title of a group that is a list says how long it is. */
const counted = (title, entries) => (entries.length ? `${title} (${entries.length})` : title);

const List = ({ name, values, empty, most, children }) => html`
  <${Rows} name=${name} label=${text.label[`${name}[]`]} add=${text.add[name]} values=${values} empty=${empty} most=${most}>${children}<//>`;

function Reply({ at, reply }) {
  const { call: made } = reply;
  return html`
    <${Lines} name="${at}.hear" value=${reply.hear} rows="2" />
    <${Long} name="${at}.say" value=${reply.say} rows="2" required maxlength="2000" />
    <details open=${Boolean(made)}><summary>${text.call}</summary>
      <div class="stack">
        <${Words} name="${at}.call.name" value=${made?.name} maxlength="64" list="tools" autocomplete="off" />
        <${Long} name="${at}.call.arguments" value=${made && JSON.stringify(made.arguments, null, 2)} rows="3" maxlength="16384" spellcheck=${false} class="mono" />
      </div>
    </details>
    <${Box} name="${at}.hang_up" value=${reply.hang_up} />`;
}

function Brain({ brain, functions }) {
  const [mode, setMode] = useState(brain.mode);
  return html`
    <${Choose} name="brain.mode" value=${brain.mode} named=${text.modes} of=${['scripted', 'chat', 'realtime']} onChange=${({ target }) => setMode(target.value)} />
    <div key=${mode} class="stack">
      ${mode !== 'scripted' && html`<${Words} name="brain.model" value=${brain.model} maxlength="200" spellcheck=${false} />`}
      ${mode === 'chat' && html`
        <div class="pair">
          <${Count} name="brain.temperature" value=${brain.temperature} min="0" max="2" step="any" />
          <${Count} name="brain.max_tokens" value=${brain.max_tokens} min="16" max="8192" />
        </div>`}
      ${mode === 'scripted' && html`
        <${List} name="brain.replies" values=${brain.replies ?? []} empty=${{ hear: [], say: '', call: null, hang_up: false }} most=${100}>
          ${(at, reply) => html`<${Reply} at=${at} reply=${reply} />`}<//>
        <datalist id="tools">${[...functions.map(({ name }) => name), ...TOOLS].map((name) => html`<option key=${name} value=${name} />`)}</datalist>`}
    </div>`;
}

/** What is heard of a voice: the first message as it stands in the form, without its variables. */
const sampleOf = (form) => form.elements.first_message.value.replace(/\{\{[^{}]*\}\}/g, '').trim().slice(0, MOST_SAID);

const kindOf = ({ type, provider, language }) => [language, type === 'cloned' ? text.ownVoice : provider].filter(Boolean).join(', ');

function Voice({ value, voices }) {
  const [chosen, setChosen] = useState(value ?? '');
  const [speak, sound, hush] = useSpeech();
  const [run, busy, error] = useAct();
  const voice = voices.find(({ id }) => id === chosen) ?? { id: chosen, name: chosen };
  const listen = ({ currentTarget: { form } }) => run(() => speak(voice, sampleOf(form)));
  const change = ({ target }) => {
    setChosen(target.value);
    hush();
  };
  const known = voices.map((one) => [one.id, text.voiceOf(one.name, kindOf(one))]);
  const gone = value && !voices.some(({ id }) => id === value) ? [[value, text.goneVoice(value)]] : [];
  return html`
    <${Select} ...${about('voice_id')} options=${[['', text.defaultVoice], ...gone, ...known]} defaultValue=${value ?? ''} onChange=${change} />
    <div class="actions left">
      <button type="button" class="button quiet small" disabled=${!chosen || busy} onClick=${listen}>${busy ? words.working : text.listen}</button>
      <span class="hint">${text.listenHint}</span>
    </div>
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    ${sound && html`<${Heard} sound=${sound} name=${voice.name} />`}`;
}

function Question({ at, question }) {
  const [type, setType] = useState(question.type);
  return html`
    <${Long} name="${at}.text" value=${question.text} rows="2" required maxlength="500" />
    <div class="pair">
      <${Words} name="${at}.key" value=${question.key} required maxlength="64" spellcheck=${false} />
      <${Choose} name="${at}.type" value=${question.type} named=${text.types} of=${['text', 'number', 'boolean', 'choice', 'date']} onChange=${({ target }) => setType(target.value)} />
    </div>
    ${type === 'choice' && html`<${Lines} name="${at}.options" value=${question.options} />`}
    <${Box} name="${at}.required" value=${question.required} />`;
}

const Disposition = ({ at, disposition }) => html`
  <div class="pair">
    <${Words} name="${at}.code" value=${disposition.code} required maxlength="64" spellcheck=${false} />
    <${Words} name="${at}.label" value=${disposition.label} maxlength="200" />
  </div>
  <${Long} name="${at}.description" value=${disposition.description} rows="2" maxlength="1000" />
  <${Box} name="${at}.declined" value=${disposition.declined} />`;

const Target = ({ at, target }) => html`
  <div class="pair">
    <${Words} name="${at}.name" value=${target.name} required maxlength="64" />
    <${Words} name="${at}.number" value=${target.number} type="tel" required maxlength="50" />
  </div>`;

const Functions = ({ chosen, functions }) => functions.length
  ? html`<${Checks} name="function_ids" legend=${text.label.function_ids} chosen=${chosen}
      options=${functions.map(({ id, name, description }) => [id, html`<strong>${name}</strong> <span class="hint">${description.slice(0, 200)}</span>`])} />`
  : html`<p class="muted">${text.about.noFunctions} <a href=${to('functions', 'new')}>${text.about.newFunction}</a></p>`;

export function Fields({ definition, functions, voices }) {
  const { brain, recording, opt_out: optOut, transfer, turn_detection: turns, interruption, silence, questions, dispositions } = definition;
  const { groups } = text;
  return html`
    <${Group} title=${groups.words} isOpen>
      <div class="pair">
        <${Words} name="name" value=${definition.name} required maxlength="200" />
        <${Words} name="language" value=${definition.language} maxlength="35" list="languages" spellcheck=${false} />
      </div>
      <datalist id="languages">${LANGUAGES.map((language) => html`<option key=${language} value=${language} />`)}</datalist>
      <${Long} name="first_message" value=${definition.first_message} rows="3" maxlength="2000" />
      <${Long} name="prompt" value=${definition.prompt} rows="14" required maxlength="50000" />
    <//>
    <${Group} title=${groups.brain} note=${text.about.brain} isOpen><${Brain} brain=${brain} functions=${functions} /><//>
    <${Group} title=${groups.voice} isOpen><${Voice} value=${definition.voice_id} voices=${voices} /><//>
    <${Group} title=${counted(groups.functions, definition.function_ids)} note=${text.about.functions}><${Functions} chosen=${definition.function_ids} functions=${functions} /><//>
    <${Group} title=${counted(groups.questions, questions)} note=${text.about.questions}>
      <${List} name="questions" values=${questions} empty=${{ key: '', text: '', type: 'text', options: [], required: false }}>
        ${(at, question) => html`<${Question} at=${at} question=${question} />`}<//>
    <//>
    <${Group} title=${counted(groups.dispositions, dispositions)} note=${text.about.dispositions}>
      <${List} name="dispositions" values=${dispositions} empty=${{ code: '' }}>${(at, disposition) => html`<${Disposition} at=${at} disposition=${disposition} />`}<//>
    <//>
    <${Group} title=${groups.recording} note=${text.about.recording}>
      <${Box} name="recording.enabled" value=${recording.enabled} />
      <div class="pair">
        <${Choose} name="recording.consent" value=${recording.consent} named=${text.consents} of=${['none', 'notice', 'verbal']} />
        <${Choose} name="recording.channels" value=${recording.channels} named=${text.channels} of=${['dual', 'mono']} />
      </div>
      <${Long} name="recording.consent_message" value=${recording.consent_message} rows="2" maxlength="500" />
      <${Count} name="recording.retention_days" value=${recording.retention_days} min="1" max="3650" />
      <${Box} name="recording.transfers" value=${recording.transfers} />
    <//>
    <${Group} title=${groups.optOut} note=${text.about.optOut}>
      <${Box} name="opt_out.enabled" value=${optOut.enabled} />
      <${Lines} name="opt_out.phrases" value=${optOut.phrases} />
      <${Choose} name="opt_out.key" value=${optOut.key ?? ''} named=${(key) => key || text.noKey} of=${['', ...KEYS]} />
    <//>
    <${Group} title=${groups.transfer} note=${text.about.transfer}>
      <${Words} name="transfer.number" value=${transfer?.number} type="tel" maxlength="50" />
      <${List} name="transfer.targets" values=${transfer?.targets ?? []} empty=${{ name: '', number: '' }} most=${20}>${(at, target) => html`<${Target} at=${at} target=${target} />`}<//>
    <//>
    <${Group} title=${groups.turns} note=${text.about.turns}>
      <${Choose} name="turn_detection.mode" value=${turns.mode} named=${text.turnModes} of=${['vad', 'provider']} />
      <div class="pair">
        <${Count} name="turn_detection.silence_ms" value=${turns.silence_ms} min="200" max="3000" />
        <${Count} name="turn_detection.unfinished_silence_ms" value=${turns.unfinished_silence_ms} min="200" max="3000" />
      </div>
      <${Box} name="turn_detection.eager" value=${turns.eager} />
      <div class="pair">
        <${Count} name="interruption.min_duration_ms" value=${interruption.min_duration_ms} min="0" max="2000" />
        <${Count} name="interruption.min_words" value=${interruption.min_words} min="0" max="10" />
      </div>
      <${Choose} name="interruption.sensitivity" value=${interruption.sensitivity} named=${text.sensitivities} of=${['low', 'medium', 'high']} />
      <${Box} name="interruption.resume" value=${interruption.resume} />
    <//>
    <${Group} title=${groups.limits}>
      <div class="pair">
        <${Count} name="max_duration_seconds" value=${definition.max_duration_seconds} min="30" max="7200" />
        <${Count} name="silence.hangup_after_seconds" value=${silence.hangup_after_seconds} min="5" max="600" />
      </div>
    <//>`;
}
