// The dialog that makes a room.
import { call } from '../api.js';
import { Field, FormDialog, Select } from '../form.js';
import { html, useState } from '../html.js';
import { Loaded, Note } from '../parts.js';
import { go, to } from '../place.js';
import { words } from '../words.js';
import { everything, voices as allVoices } from '../lists.js';
import { variablesOf } from './definition.js';
import { written } from './lines.js';
import { Pairs, pairsOf } from './pairs.js';

const text = words.rooms;
const ask = text.form;
const A_DAY = '86400';
/** Variables of an agent that get a field of their own. */
const MOST_FIELDS = 20;
/** These are the participant's. */
const PARTICIPANT = ['first_name', 'last_name', 'email'];
const prefix = 'variables.';

/** What a room is made of. */
export async function loadParts() {
  const [agents, voices] = await Promise.all([everything('/agents'), allVoices()]);
  return { agents, voices };
}

/** What the agent's words leave open. */
const openIn = (agent) => variablesOf(agent).filter((name) => !PARTICIPANT.includes(name)).slice(0, MOST_FIELDS);

const numberOf = (values, name) => (values.get(name) ? Number(values.get(name)) : null);

function recordingOf(values) {
  const enabled = values.get('recording.enabled');
  return {
    enabled: enabled === '' ? null : enabled === 'true', consent: written(values, 'recording.consent'), channels: written(values, 'recording.channels'),
    retention_days: numberOf(values, 'recording.retention_days'),
  };
}

function variablesIn(values, names) {
  const own = names.map((name) => [name, written(values, prefix + name)]).filter(([, value]) => value !== null);
  return { ...pairsOf(values, 'variables'), ...Object.fromEntries(own) };
}

async function create(values, names) {
  const minutes = numberOf(values, 'max_duration_seconds');
  const room = await call('POST', '/rooms', {
    agent_id: values.get('agent_id'), voice_id: written(values, 'voice_id'), client_reference_id: written(values, 'client_reference_id'),
    participant: Object.fromEntries(PARTICIPANT.map((name) => [name, written(values, `participant.${name}`)])),
    variables: variablesIn(values, names), metadata: pairsOf(values, 'metadata'), expires_in_seconds: Number(values.get('expires_in_seconds')),
    max_duration_seconds: minutes && Math.round(minutes * 60), recording: recordingOf(values),
  });
  go(to('rooms', room.id));
}

/** One of these, or as the agent has it. */
const optionsOf = (known) => [['', ask.agentsOwn], ...Object.entries(known)];

function Fields({ agents, voices, close }) {
  const [chosen, setChosen] = useState(agents[0].id);
  const names = openIn(agents.find(({ id }) => id === chosen));
  return html`
    <${FormDialog} title=${text.create} act=${(values) => create(values, names)} submit=${text.created} close=${close}>
      <${Select} name="agent_id" label=${ask.agent} options=${agents.map(({ id, name }) => [id, name])} defaultValue=${chosen}
        onChange=${({ target }) => setChosen(target.value)} />
      <fieldset class="stack tight"><legend>${ask.participant}</legend>
        <p class="hint">${ask.participantHint}</p>
        <${Field} name="participant.first_name" label=${ask.first} maxlength="200" autocomplete="off" dir="auto" />
        <${Field} name="participant.last_name" label=${ask.last} maxlength="200" autocomplete="off" dir="auto" />
        <${Field} name="participant.email" label=${ask.email} type="email" maxlength="254" autocomplete="off" />
      </fieldset>
      ${names.length > 0 && html`
        <fieldset class="stack tight"><legend>${ask.variables}</legend>
          ${names.map((name) => html`<${Field} key=${name} name=${prefix + name} label=${name} maxlength="2000" autocomplete="off" dir="auto" />`)}
        </fieldset>`}
      <${Select} name="expires_in_seconds" label=${ask.expires} options=${Object.entries(text.lasts)} defaultValue=${A_DAY} />
      <${Select} name="recording.enabled" label=${ask.recorded} options=${optionsOf(ask.recordedOf)} />
      <details><summary>${ask.more}</summary>
        <div class="stack">
          <${Select} name="recording.consent" label=${ask.consent} options=${optionsOf(ask.consentOf)} />
          <${Select} name="recording.channels" label=${ask.channels} options=${optionsOf(ask.channelsOf)} />
          <${Field} name="recording.retention_days" label=${ask.kept} hint=${ask.keptHint} type="number" min="1" max="3650" step="1" />
          <${Field} name="max_duration_seconds" label=${ask.longest} hint=${ask.longestHint} type="number" min="0.5" max="120" step="0.5" />
          <${Select} name="voice_id" label=${ask.voice} options=${[['', ask.agentsOwn], ...voices.map(({ id, name }) => [id, name])]} />
          <${Pairs} name="variables" label=${ask.others} />
          <${Field} name="client_reference_id" label=${ask.reference} maxlength="200" autocomplete="off" />
          <${Pairs} name="metadata" label=${ask.metadata} />
        </div>
      </details>
    <//>`;
}

export function NewRoom({ parts, close }) {
  if (parts.data?.agents.length) return html`<${Fields} ...${parts.data} close=${close} />`;
  return html`
    <${Note} title=${text.create} close=${close}>
      <${Loaded} of=${parts}>${() => html`<p>${text.noAgents}</p><p><a href=${to('agents')}>${text.toAgents}</a></p>`}<//>
    <//>`;
}
