// A new campaign, step by step. From the first step on it is a draft that the API keeps, and the address names it: a reload, a bookmark or a
// colleague goes on where it was left.
import { ask, call, mayWrite } from '../api.js';
import { count } from '../format.js';
import { Form } from '../form.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { useEvery } from '../live.js';
import { Confirm, Heading, Loaded, useAct, useLoad } from '../parts.js';
import { go, place, to, wentOn } from '../place.js';
import { Unsaved } from '../unsaved.js';
import { merged } from '../values.js';
import { words } from '../words.js';
import { asksStart } from './campaign.js';
import { Moment, momentOf } from './hours.js';
import { ImportTable, isRunning } from './imports.js';
import { LawCheck } from './law.js';
import { Outlook } from './outlook.js';
import { Rules, rulesOf, surroundings } from './rules.js';
import { Upload, isSending } from './upload.js';
import { LEGAL, Who, whoOf } from './who.js';

const text = words.newCampaign;
const STEPS = ['who', 'contacts', 'rules', 'check'];
/** What is written is kept so long after the last key. */
const REST_MS = 1_000;
/** What was chosen may ask for more: that is drawn by then. */
const DRAWN_MS = 50;
/** A campaign of which nothing is said yet. */
const FRESH = {
  name: '', channel: 'phone', agent_id: null, voice_id: null, template: null, from_numbers: [], variables: {}, consent_basis: null, counts: { total: 0 },
};
const LISTED = 20;
/** Contacts to ask the law about. */
const SAMPLE = 20;

/** The last change of a draft, by its path: what is looked at next waits for it. */
const keeping = new Map();

const at = (id, step) => to('campaigns', 'new', { id, step });

/** A choice that is missing is asked for when the person goes on. */
const isFit = ({ willValidate, validity, localName }) => !willValidate || validity.valid || (validity.valueMissing && localName === 'select');

/**
 * Keeps what is written in a form, a moment after it was: `read(values, before)` makes the patch, and null is nothing new. `before` is the
 * campaign as this form has read and written it: what a colleague changes meanwhile is not taken back. Answers what to put on the form,
 * `saved()` which does it at once, what to tell, and whether something would be lost.
 */
function useKept(campaign, read, changed) {
  const path = `/campaigns/${campaign.id}`;
  const [state, setState] = useState({ said: '', isUnsaved: false });
  const latest = useRef(null);
  latest.current = changed;
  const mine = useRef({
    timer: null, form: null, hasFailed: false, queue: Promise.resolve(), before: campaign,
    base: `/t/${encodeURIComponent(place.value.slug)}/${place.value.env}`,
  });
  const send = (values) => {
    const { current } = mine;
    clearTimeout(current.timer);
    current.timer = null;
    const turn = current.queue.then(async () => {
      const patch = read(values, current.before);
      if (!patch) return;
      const answer = await ask('PATCH', current.base + path, patch);
      current.before = merged(current.before, patch);
      latest.current(answer);
    });
    const tell = (error) => {
      current.hasFailed = Boolean(error);
      setState({ said: error ? text.notKept(error.message) : text.kept, isUnsaved: current.hasFailed });
    };
    turn.then(() => tell(null), tell);
    current.queue = turn.catch(() => {});
    keeping.set(path, turn);
    return turn;
  };
  const keep = () => {
    const { form } = mine.current;
    mine.current.timer = null;
    if ([...form.elements].every(isFit)) send(new FormData(form));
    else setState({ said: text.notFit, isUnsaved: true });
  };
  const after = (ms) => ({ currentTarget }) => {
    mine.current.form = currentTarget;
    clearTimeout(mine.current.timer);
    mine.current.timer = setTimeout(keep, ms);
    setState({ said: '', isUnsaved: mine.current.hasFailed || ![...currentTarget.elements].every(isFit) });
  };
  useEffect(() => {
    const guard = (event) => { if (mine.current.timer) event.preventDefault(); };
    addEventListener('beforeunload', guard);
    return () => {
      removeEventListener('beforeunload', guard);
      if (mine.current.timer) keep();
    };
  }, []);
  return { form: { onInputCapture: after(REST_MS), onChange: after(DRAWN_MS) }, saved: send, ...state };
}

/** A step that is a form: what is written is kept, and the button leads to the next one. `children`: draws the fields of the campaign. */
function Written({ campaign, read, changed, next, children }) {
  // As it was when the step was opened: nothing is drawn over what is written.
  const [first] = useState(campaign);
  const kept = useKept(first, read, changed);
  const act = async (values) => {
    await kept.saved(values);
    go(at(campaign.id, next), { isSure: true });
  };
  return html`
    <${Form} act=${act} submit=${text.next[next]} ...${kept.form}>${children(first)}<//>
    <p class="hint" role="status">${kept.said}</p>
    ${kept.isUnsaved && html`<${Unsaved} asks=${text.leave} isView />`}`;
}

function First() {
  const create = async (values) => {
    const campaign = await call('POST', '/campaigns', whoOf(values, FRESH));
    // Who goes back finds the draft, and not an empty form.
    go(at(campaign.id, 'who'), { replace: true });
    go(at(campaign.id, 'contacts'));
  };
  return html`<${Form} act=${create} submit=${text.next.contacts}><${Who} campaign=${FRESH} /><//>`;
}

function Contacts({ campaign, reload }) {
  const imports = useLoad(() => call('GET', `/imports?campaign_id=${campaign.id}&limit=${LISTED}`), [campaign.id]);
  useEvery(() => Promise.all([imports.reload(), reload()]), 5_000, Boolean(imports.data?.data.some(isRunning)));
  const { total } = campaign.counts;
  return html`
    <p>${total ? html`<strong>${text.contacts(count(total))}</strong> <a href=${to('campaigns', campaign.id)}>${text.seeContacts}</a>` : text.noContacts}</p>
    <${Upload} campaign=${campaign} done=${() => Promise.all([reload(), imports.reload()])} />
    <${Loaded} of=${imports}>${({ data }) => data.length > 0 && html`
      <section class="stack tight" aria-labelledby="imports">
        <h3 id="imports">${text.imports}</h3><${ImportTable} imports=${data} label=${text.imports} />
      </section>`}<//>
    <div class="actions left"><a class="button ${total ? '' : 'quiet'}" href=${at(campaign.id, 'rules')}>${text.next.rules}</a></div>`;
}

/** Starts it now, or at a time. */
function Start({ campaign, isReady }) {
  const [isLater, setIsLater] = useState(Boolean(campaign.schedule.starts_at));
  const [asks, setAsks] = useState(null);
  const path = `/campaigns/${campaign.id}`;
  const act = async (values) => {
    const starts = isLater ? momentOf(values, 'schedule.starts_at', campaign.schedule.starts_at) : null;
    setAsks({
      isDanger: false,
      asks: asksStart(campaign, starts),
      act: async () => {
        if (starts !== campaign.schedule.starts_at) await call('PATCH', path, { schedule: { starts_at: starts } });
        await call('POST', `${path}/start`, undefined);
        go(to('campaigns', campaign.id));
      },
    });
  };
  const choice = (later, label) => html`
    <label class="choice"><input type="radio" name="when" value=${later ? 'later' : 'now'} checked=${isLater === later} onChange=${() => setIsLater(later)} />
      <strong>${label}</strong></label>`;
  return html`
    <section class="stack tight" aria-labelledby="start"><h3 id="start">${text.start}</h3>
      ${!isReady ? html`<p class="notice">${text.notReady}</p>` : html`<${Form} act=${act} submit=${isLater ? text.arm : words.campaign.start}>
        <fieldset class="choices"><legend class="visually-hidden">${text.start}</legend>${choice(false, text.now)}${choice(true, text.later)}</fieldset>
        ${isLater && html`
          <${Moment} name="schedule.starts_at" value=${campaign.schedule.starts_at} label=${text.startsAt} hint=${text.startsAtHint} required />`}
      <//>`}
      ${asks && html`<${Confirm} ...${asks} close=${() => setAsks(null)} />`}
    </section>`;
}

function Check({ campaign, about, reload }) {
  const loaded = useLoad(async () => {
    const path = `/campaigns/${campaign.id}`;
    await keeping.get(path)?.catch((error) => {
      keeping.delete(path); // it is told once
      throw new Error(text.lost(error.message));
    });
    return call('POST', `${path}/preflight`, undefined);
  }, [campaign.id]);
  const [run, busy] = useAct();
  const again = () => run(async () => { await Promise.all([loaded.reload(), reload()]); });
  return html`
    ${isSending(campaign.id) && html`<p class="notice">${text.stillSending}</p>`}
    ${!loaded.data && !loaded.error && html`<p class="hint">${text.looking}</p>`}
    <${Loaded} of=${loaded}>${(outlook) => html`
      <${Outlook} outlook=${outlook} campaign=${campaign} about=${about} />
      <div class="actions left"><button type="button" class="button quiet" disabled=${busy} onClick=${again}>${busy ? words.working : text.again}</button></div>`}<//>
    ${(loaded.data || loaded.error) && html`<${Start} campaign=${campaign} isReady=${loaded.data?.ready ?? true} />`}`;
}

function Steps({ id, step }) {
  return html`
    <nav aria-label=${text.progress}><ol class="wizard">
      ${STEPS.map((name) => html`<li key=${name}>${id
        ? html`<a href=${at(id, name)} aria-current=${name === step ? 'step' : undefined}>${text.steps[name]}</a>`
        : html`<span aria-current=${name === step ? 'step' : undefined}>${text.steps[name]}</span>`}</li>`)}
    </ol></nav>`;
}

/** Its name is read out when the person comes from another step. */
function Step({ name, children }) {
  const heading = useRef(null);
  useEffect(() => {
    if (wentOn.value) heading.current.focus();
    wentOn.value = false;
  }, []);
  return html`
    <section class="stack" aria-labelledby="step">
      <h2 id="step" ref=${heading} tabindex="-1">${text.titles[name]}</h2>
      ${text.hints[name] && html`<p class="hint">${text.hints[name]}</p>`}
      ${children}
    </section>`;
}

/** Who calls in a draft; null: nobody yet, or an agent that is gone. */
async function agentOf({ channel, agent_id: id }) {
  if (channel !== 'phone' || !id) return null;
  return call('GET', `/agents/${id}`).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });
}

/** Some of those whom it will reach, as the law is asked about them. */
async function sampleOf({ id, channel, counts: { total } }) {
  if (!total) return [];
  const { data } = await call('GET', `/campaigns/${id}/contacts?limit=${SAMPLE}`);
  return data.map((one) => ({ to: channel === 'email' ? one.email : one.phone_number, region: one.region, timezone: one.timezone }))
    .filter(({ to: address }) => address);
}

/** A clone is named by its UUID, and every other voice by a word. */
const isClone = (voice) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(voice ?? '');

/** All that a draft says of what the law asks for. */
function givenOf(campaign, agent) {
  const { channel, from_numbers: [from] } = campaign;
  const legal = Object.entries(LEGAL).map(([name, usual]) => [name, campaign[name] ?? usual]);
  return {
    ...Object.fromEntries(legal), channel, from: channel === 'email' ? null : from, language: agent?.language,
    cloned_voice: channel === 'phone' && isClone(campaign.voice_id ?? agent?.voice_id),
  };
}

/** What the law says of the draft as it is, of its contacts and in any place, on any day. Open where it will bar somebody. */
function WhichRules({ campaign }) {
  const { id, channel, agent_id: speaks, counts: { total } } = campaign;
  const loaded = useLoad(async () => {
    const [agent, sample] = await Promise.all([agentOf(campaign), sampleOf(campaign)]);
    return { agent, sample };
  }, [id, channel, speaks, total]);
  const isBinding = place.value.env === 'live' || campaign.sandbox_law === 'enforce';
  return html`
    <details open=${isBinding}><summary>${words.compliance.law.ofCampaign}</summary>
      <${Loaded} of=${loaded}>${({ agent, sample }) => html`
        <div class="stack"><${LawCheck} given=${givenOf(campaign, agent)} sample=${sample} isBinding=${isBinding} /></div>`}<//>
    </details>`;
}

function Draft({ id, step }) {
  const loaded = useLoad(async () => {
    const [campaign, about] = await Promise.all([call('GET', `/campaigns/${id}`), surroundings()]);
    return { campaign, about };
  }, [id]);
  const [newer, setNewer] = useState(null);
  return html`
    <${Loaded} of=${loaded}>${({ campaign: read, about }) => {
      // What the last change was answered, unless it was loaded since.
      const campaign = newer?.of === read ? newer.campaign : read;
      const changed = (answer) => setNewer({ of: read, campaign: answer });
      const title = text.titleOf(campaign.name);
      if (campaign.status !== 'draft' || campaign.armed) {
        return html`<${Heading} title=${title} /><p class="notice">${text.started} <a href=${to('campaigns', id)}>${text.itsPage}</a></p>`;
      }
      const parts = {
        who: () => html`
          <${Written} campaign=${campaign} read=${whoOf} changed=${changed} next="contacts">${(first) => html`<${Who} campaign=${first} />`}<//>
          <${WhichRules} campaign=${campaign} />`,
        contacts: () => html`<${Contacts} campaign=${campaign} reload=${loaded.reload} /><${WhichRules} campaign=${campaign} />`,
        rules: () => html`
          <${Written} campaign=${campaign} read=${rulesOf} changed=${changed} next="check">${(first) => html`<${Rules} campaign=${first} about=${about} />`}<//>`,
        check: () => html`<${Check} campaign=${campaign} about=${about} reload=${loaded.reload} />`,
      };
      return html`
        <${Heading} title=${title} />
        <p class="hint">${text.draft}</p>
        <${Steps} id=${id} step=${step} />
        <${Step} key=${step} name=${step}>${parts[step]()}<//>`;
    }}<//>`;
}

export function NewCampaign() {
  const id = place.value.query.get('id') ?? '';
  const asked = place.value.query.get('step');
  if (!mayWrite()) return html`<${Heading} title=${text.title} /><p>${text.viewer} <a href=${to('campaigns')}>${words.nav.campaigns}</a></p>`;
  if (id) return html`<${Draft} key=${id} id=${id} step=${STEPS.includes(asked) ? asked : 'who'} />`;
  return html`<${Heading} title=${text.title} /><${Steps} step="who" /><${Step} name="who"><${First} /><//>`;
}
