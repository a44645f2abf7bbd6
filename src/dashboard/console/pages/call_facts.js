// What is known of a call: who, when, how it went, and what a person thinks of it.
import { call, mayWrite } from '../api.js';
import { Area, Field, FormDialog, Select } from '../form.js';
import { html, useEffect, useState } from '../html.js';
import { duration, money } from '../format.js';
import { Facts, Time } from '../parts.js';
import { to } from '../place.js';
import { words } from '../words.js';
import { directionOf } from './calls.js';

const text = words.call;
const { facts } = text;

const sameContact = ({ campaign_id: campaign, contact_id: contact }) => to('calls', '', { campaign_id: campaign, contact_id: contact });

export const CallFacts = ({ session, agent, campaign }) => html`
  <${Facts} of=${[
    [facts.direction, directionOf(session)], [facts.from, session.from_number], [facts.to, session.to_number],
    [facts.email, session.email],
    [facts.agent, html`<a href=${to('agents', session.agent_id)}>${agent?.name ?? session.agent_id}</a>, ${text.version(session.agent_version)}`],
    [facts.campaign, campaign && html`<a href=${to('campaigns', campaign.id)}>${campaign.name}</a>`],
    [facts.attempt, session.campaign_id && html`${session.attempt} <a href=${sameContact(session)}>${text.oneContact}</a>`],
    [facts.room, session.room_id && html`<a href=${to('rooms', session.room_id)}>${words.calls.room}</a>`],
    [facts.trunk, session.trunk_id && html`<a href=${to('trunks', session.trunk_id)}>${text.openTrunk}</a>`],
    [facts.created, html`<${Time} of=${session.created_at} />`],
    [facts.scheduled, session.scheduled_at && html`<${Time} of=${session.scheduled_at} />`],
    [facts.started, session.started_at && html`<${Time} of=${session.started_at} />`],
    [facts.length, session.ended_at && duration(session.duration_seconds)],
    [facts.reference, session.client_reference_id],
  ]} />`;

/** The agent as it is in the call, whatever it has become since. */
export async function agentIn({ agent_id: id, agent_version: version }, agent) {
  if (agent?.version === version) return agent;
  const versions = await call('GET', `/agents/${id}/versions?limit=100`);
  return versions.data.find((one) => one.version === version);
}

/** The codes to choose from: the campaign's own, else the agent's. */
async function codesOf(session, agent, campaign) {
  if (campaign?.dispositions?.length) return campaign.dispositions;
  return (await agentIn(session, agent))?.dispositions ?? [];
}

function Judge({ session, agent, campaign, reload, close }) {
  const [codes, setCodes] = useState(null);
  useEffect(() => {
    // Which there are is the API's to say, too.
    codesOf(session, agent, campaign).then(setCodes, () => setCodes([]));
  }, []);
  const save = async (values) => {
    const [code, note] = ['disposition_code', 'disposition_note'].map((name) => values.get(name).trim());
    await call('PATCH', `/sessions/${session.id}`, { disposition_code: code, disposition_note: note || null });
    await reload();
  };
  if (!codes) return null;
  const known = codes.map(({ code, label }) => [code, label ? `${label} (${code})` : code]);
  const field = { name: 'disposition_code', label: text.judge.code, hint: text.judge.hint, required: true, defaultValue: session.disposition_code ?? '' };
  return html`
    <${FormDialog} title=${text.judge.title} submit=${text.judge.save} act=${save} close=${close}>
      ${known.length
        ? html`<${Select} ...${field} options=${[['', text.judge.choose], ...known]} />`
        : html`<${Field} ...${field} maxlength="64" />`}
      <${Area} name="disposition_note" label=${text.judge.note} maxlength="1000" defaultValue=${session.disposition_note ?? ''} />
    <//>`;
}

export function Outcome({ session, agent, campaign, inMoney, reload }) {
  const [isAsked, setIsAsked] = useState(false);
  const { latency, quality, first_sound_ms: firstSound, abandoned, error, disposition_code: code, disposition_by: by } = session;
  return html`
    <section class="stack tight" aria-labelledby="outcome"><h2 id="outcome">${text.outcome}</h2>
      <${Facts} of=${[
        [facts.ended, session.end_reason && text.endedBy(text.reason(session.end_reason), session.ended_by && text.by(session.ended_by))],
        [facts.error, error && `${error.message}${error.sip_code ? ` (SIP ${error.sip_code})` : ''}`],
        [facts.answeredBy, session.answered_by && words.plain(session.answered_by)],
        [facts.disposition, code && html`<strong>${code}</strong>${by && ` ${text.decidedBy(by)}`}`],
        [facts.note, session.disposition_note],
        [facts.consent, text.consent(session.consent)],
        [facts.cost, money(session.actual_cost_cents, inMoney)],
        [facts.latency, latency && text.latency(latency.p50_ms, latency.p95_ms)],
        [facts.firstSound, firstSound !== null && text.firstSound(firstSound)],
        [facts.abandoned, abandoned && html`<span class="error">${text.abandoned(abandoned)}</span>`],
        [facts.quality, quality && text.quality(quality.loss_percent, quality.jitter_ms, quality.round_trip_ms)],
      ]} />
      ${session.ended_at && mayWrite() && html`
        <div class="actions left"><button class="button quiet small" onClick=${() => setIsAsked(true)}>${text.judge.button}</button></div>`}
      ${isAsked && html`<${Judge} session=${session} agent=${agent} campaign=${campaign} reload=${reload} close=${() => setIsAsked(false)} />`}
    </section>`;
}

const written = (values) => Object.entries(values).map(([name, value]) => [name, String(value)]);

/** What was given to the call: variables that its words may name, and labels of your own. */
export const Given = ({ session: { variables, metadata } }) => [variables, metadata].some((one) => Object.keys(one).length) && html`
  <details><summary>${text.variables}</summary>
    <div class="stack">${[[text.variablesOf, variables], [text.labels, metadata]].map(([name, values]) => Object.keys(values).length > 0 && html`
      <section class="stack tight" key=${name}><h2>${name}</h2><${Facts} of=${written(values)} /></section>`)}</div>
  </details>`;
