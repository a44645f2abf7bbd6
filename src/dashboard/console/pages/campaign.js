import { apiUrl, call, currency, mayWrite } from '../api.js';
import { ApiError } from '../../common.js';
import { Field, FormDialog } from '../form.js';
import { count, decimal, money, percent, time } from '../format.js';
import { html, useState } from '../html.js';
import { useLive } from '../live.js';
import { Badge, Confirm, Facts, Heading, Loaded, Note, Progress, Table, Time, useAct, useLoad } from '../parts.js';
import { go, place, to } from '../place.js';
import { changesOf } from '../values.js';
import { words } from '../words.js';
import { CONTACT_STATUSES, Contacts, concerns } from './contacts.js';
import { doneOf } from './overview.js';
import { Rules, rulesOf, surroundings } from './rules.js';
import { Words, wordsOf } from './who.js';

const text = words.campaign;

async function load(id) {
  const [campaign, stats, money] = await Promise.all([call('GET', `/campaigns/${id}`), call('GET', `/campaigns/${id}/stats`), currency()]);
  return { campaign, stats, money };
}

const isPast = (iso) => new Date(iso) <= Date.now();

/** What is asked before it starts: at once, or at a moment that comes by itself. */
export function asksStart({ name, counts, channel }, starts) {
  const asked = starts && !isPast(starts) ? words.newCampaign.confirmArm : text.confirmStart;
  return { ...asked, title: asked.title(name), text: asked.text(count(counts.total), place.value.env, channel, starts && time(starts)) };
}

function stateOf({ status, channel, pause_reason: paused, completed_reason: completed, armed, schedule, next_open_at: opens, cancel_requested_at: ending }) {
  return [
    ending && status !== 'completed' && text.ending(channel === 'phone'),
    status === 'paused' && paused && text.pausedFor(paused),
    completed && text.completedFor(completed),
    armed && schedule?.starts_at && text.armed(time(schedule.starts_at)),
    opens && text.opens(time(opens)),
  ].filter(Boolean);
}

/** What a change of times does at once, if it does: `{ field, asks }`. */
function surpriseOf(campaign, { starts_at: starts, ends_at: ends }) {
  if (ends && isPast(ends)) {
    const { title, text: what, ...buttons } = text.confirmEnd;
    return { field: 'schedule.ends_at', asks: { ...buttons, title: title(campaign.name), text: what(campaign.channel) } };
  }
  const isNow = campaign.armed && starts !== undefined && (!starts || isPast(starts));
  return isNow ? { field: 'schedule.starts_at', asks: asksStart(campaign, null), isDanger: false } : null;
}

/** Its rules hold from the next call on; who calls is fixed once it has started. */
function Change({ campaign, about, reload, close }) {
  // As it was when the form was opened: what somebody else changes meanwhile stays.
  const [before] = useState(campaign);
  const [asked, setAsked] = useState(null);
  const agree = (surprise) => new Promise((answer) => { setAsked({ ...surprise, answer }); });
  const act = async (values) => {
    const patch = { ...changesOf(before, wordsOf(values, before)), ...rulesOf(values, before) };
    const surprise = surpriseOf(before, patch.schedule ?? {});
    if (surprise && !await agree(surprise)) throw new ApiError(text.notSaved, { param: surprise.field });
    if (Object.keys(patch).length) await call('PATCH', `/campaigns/${before.id}`, patch);
    await reload();
  };
  const answered = () => {
    asked.answer(false); // unless it was yes
    setAsked(null);
  };
  if (!about.data) return html`<${Note} title=${text.change} close=${close}><${Loaded} of=${about}>${() => null}<//><//>`;
  return html`
    <${FormDialog} title=${text.change} act=${act} submit=${words.save} close=${close} isNarrow=${false}>
      <p class="hint">${text.changeHint(before.channel === 'phone')}</p>
      <${Field} name="name" label=${words.newCampaign.name} maxlength="200" required defaultValue=${before.name} />
      <${Rules} campaign=${before} about=${about.data} />
      <details><summary>${words.newCampaign.more}</summary><div class="stack"><${Words} campaign=${before} /></div></details>
    <//>
    ${asked && html`<${Confirm} asks=${asked.asks} isDanger=${asked.isDanger} act=${() => asked.answer(true)} close=${answered} />`}`;
}

/** What may be done with a campaign in its state: `[word, act, question]`. */
function Actions({ campaign, reload }) {
  const [run, busy, error] = useAct();
  const [asks, setAsks] = useState(null);
  const [isChanging, setIsChanging] = useState(false);
  const about = useLoad(surroundings, []);
  const path = `/campaigns/${campaign.id}`;
  const post = (verb) => async () => { await call('POST', `${path}/${verb}`, undefined); await reload(); };
  const duplicate = async () => {
    const copy = await call('POST', `${path}/duplicate`, {});
    go(to('campaigns', copy.id));
  };
  const { status, name, counts, channel, pause_reason: paused, cancel_requested_at: isEnding } = campaign;
  const button = (word, act, kind = 'quiet') => html`<button class="button ${kind}" disabled=${busy} onClick=${act}>${word}</button>`;
  const start = () => setAsks({ asks: asksStart(campaign, campaign.schedule.starts_at), act: post('start'), isDanger: false });
  const cancel = { ...text.confirmCancel, title: text.confirmCancel.title(name), text: text.confirmCancel.text(channel) };
  const remove = { ...text.confirmDelete, title: text.confirmDelete.title(name), text: text.confirmDelete.text(count(counts.total)) };
  const isDraft = status === 'draft' && !campaign.armed;
  const isOpen = status !== 'completed' && !isDraft && !isEnding;
  const removal = async () => {
    await call('DELETE', path);
    go(to('campaigns'));
  };
  return html`
    <div class="actions left">
      ${isDraft && html`<a class="button quiet" href=${to('campaigns', 'new', { id: campaign.id, step: 'who' })}>${text.setUp}</a>`}
      ${isDraft && button(text.start, start, '')}
      ${isOpen && (status === 'running' || paused === 'quiet_hours') && button(text.pause, () => run(post('pause')), '')}
      ${isOpen && paused === 'manual' && button(text.resume, () => run(post('resume')), '')}
      ${isOpen && button(text.change, () => setIsChanging(true))}
      ${button(text.duplicate, () => run(duplicate))}
      ${isOpen && button(text.cancel, () => setAsks({ asks: cancel, act: post('cancel') }), 'quiet danger')}
      ${(isDraft || status === 'completed') && button(text.remove, () => setAsks({ asks: remove, act: removal }), 'quiet danger')}
    </div>
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    ${asks && html`<${Confirm} ...${asks} close=${() => setAsks(null)} />`}
    ${isChanging && html`<${Change} campaign=${campaign} about=${about} reload=${reload} close=${() => setIsChanging(false)} />`}`;
}

/** The last hours with calls as bars; the same figures stand in a table for those who do not see them. */
function Hours({ hours, isPhone }) {
  if (!hours.length) return html`<p class="muted">${text.noHours}</p>`;
  const most = Math.max(...hours.map(({ started }) => started), 1);
  const height = (value) => (value / most) * 100;
  // A day at least, so that the first hour is no wall.
  const width = Math.max(hours.length, 24) * 10;
  return html`
    <svg class="bars" viewBox="0 0 ${width} 100" preserveAspectRatio="none" aria-hidden="true">
      ${hours.map(({ hour, started, answered }, n) => html`
        <g key=${hour}>
          <rect class="started" x=${n * 10 + 1} y=${100 - height(started)} width="8" height=${height(started)} />
          <rect class="answered" x=${n * 10 + 1} y=${100 - height(answered)} width="8" height=${height(answered)} />
        </g>`)}
    </svg>
    <p class="hint">${text.hoursSpan(time(hours[0].hour), time(hours.at(-1).hour))}</p>
    <details><summary>${text.figures}</summary>
      <${Table} label=${text.hours(isPhone)} columns=${Object.values(text.hoursTable)} rows=${[...hours].reverse().map((row) => ({
        key: row.hour,
        cells: [html`<${Time} of=${row.hour} />`, count(row.started), count(row.answered), percent(row.answer_rate)],
      }))} />
    </details>`;
}

const abandoned = ({ abandoned: calls, answered_live: live, rate }) => text.abandoned(count(calls), count(live), rate !== null && percent(rate));

function Counts({ counts }) {
  const label = words.campaigns.progress(count(doneOf(counts)), count(counts.total));
  return html`
    <div class="whole"><${Progress} done=${doneOf(counts)} total=${counts.total} label=${label} /><span>${label}</span></div>
    <${Facts} of=${CONTACT_STATUSES.map((name) => [words.status(name), count(counts[name])])} />`;
}

export function Campaign({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  useLive(concerns(id), loaded.reload);
  return html`
    <${Loaded} of=${loaded} isPage>${({ campaign, stats, money: inMoney }) => {
      const isPhone = campaign.channel === 'phone';
      return html`
        <${Heading} title=${campaign.name}><${Badge} of=${campaign.status} /><//>
        ${stateOf(campaign).map((line) => html`<p class="notice" key=${line}>${line}</p>`)}
        ${campaign.blocked_by.map((by) => html`<p class="error block" role="alert" key=${by}>${text.blocked(by)}</p>`)}
        ${mayWrite() && html`<${Actions} campaign=${campaign} reload=${loaded.reload} />`}
        <${Counts} counts=${campaign.counts} />
        <${Facts} of=${[
          [text.facts.rate(isPhone), text.rateOf(decimal(stats.attempts_per_second), campaign.pacing?.calls_per_second)],
          [text.facts.slots, isPhone ? text.slotsOf(count(stats.slots.in_use), count(stats.slots.limit)) : null],
          [text.facts.limiting, campaign.status === 'running' ? stats.limiting_factor ? text.limiting(stats.limiting_factor) : text.notLimited : null],
          [text.facts.answered, isPhone ? percent(stats.answer_rate) : null],
          [text.facts.abandonedDay, isPhone && abandoned(stats.abandonment.last_24_hours)],
          [text.facts.abandonedMonth, isPhone && abandoned(stats.abandonment.last_30_days)],
          [text.facts.cost, money(stats.cost_cents, inMoney)],
          [text.facts.finish, stats.expected_finish_at && time(stats.expected_finish_at)],
        ]} />
        <section class="stack tight"><h2>${text.hours(isPhone)}</h2><${Hours} hours=${stats.hours} isPhone=${isPhone} /></section>
        ${campaign.counts.total > 0 && html`<p><a href=${apiUrl(`/campaigns/${id}/report.csv`)} download>${text.report}</a></p>`}
        <${Contacts} campaign=${campaign} reload=${loaded.reload} />`;
    }}<//>`;
}
