import { ApiError, countryChoices, zoneChoices } from '../../common.js';
import { ask, isOwner, me, query } from '../api.js';
import { Field, FormDialog, Secret, Select } from '../form.js';
import { html, useState } from '../html.js';
import { Badge, Confirm, Facts, Heading, Loaded, More, Note, Table, Time, useAct, useLoad, usePages } from '../parts.js';
import { place } from '../place.js';
import { words } from '../words.js';

const text = words.members;
const ROLES = ['viewer', 'admin', 'owner'];

/** Routes of the workspace itself, in no environment. */
const own = (path = '') => `/t/${encodeURIComponent(place.value.slug)}${path}`;
const isMe = ({ id }) => id === me.value.user.id;

const Role = ({ of }) => html`<span class="nowrap">${text.role(of)}</span>`;

/** A button of a row, which also says of whom to those who do not see the row. */
const OfOne = ({ what, who, isDanger, ...rest }) => html`
  <button class="button quiet small ${isDanger ? 'danger' : ''}" aria-label="${what}: ${who}" ...${rest}>${what}</button>`;

const RoleChoice = ({ role = 'viewer' }) => html`
  <${Select} name="role" label=${text.roleLabel} hint=${text.roles} options=${ROLES.map((name) => [name, text.role(name)])} defaultValue=${role} />`;

/** `sent(invitation)` after it was; somebody who was invited before gets another link, and the old one ends. */
function Invite({ sent, close }) {
  const act = async (values) => {
    const invitation = { email: values.get('email').trim(), role: values.get('role') };
    await sent(await ask('POST', own('/invitations'), invitation).catch((error) => {
      throw error.code === 'already_exists' ? new ApiError(text.invite.isMember, { param: 'email' }) : error;
    }));
  };
  return html`
    <${FormDialog} title=${text.invite.title} act=${act} submit=${text.invite.submit} close=${close}>
      <${Field} name="email" type="email" label=${text.email} hint=${text.invite.hint}
        required maxlength="254" autocomplete="off" data-message=${text.invite.badEmail} autofocus />
      <${RoleChoice} />
    <//>`;
}

function ChangeRole({ member, close, done }) {
  const act = async (values) => {
    const changed = await ask('PATCH', own(`/members/${member.id}`), { role: values.get('role') });
    await done(text.changed(changed.email, text.role(changed.role)));
  };
  return html`
    <${FormDialog} title=${text.change.title(member.email)} act=${act} submit=${text.change.submit} close=${close}>
      <p>${isMe(member) ? text.change.own : text.change.text}</p>
      <${RoleChoice} role=${member.role} />
    <//>`;
}

const removal = (member) => {
  const { title, own: mine, text: theirs, ...rest } = text.confirmRemove;
  return { ...rest, title: title(member.email), text: isMe(member) ? mine : theirs };
};

function MemberList({ pages, done }) {
  const [open, setOpen] = useState(null);
  const close = () => setOpen(null);
  const remove = async ({ id, email }) => {
    await ask('DELETE', own(`/members/${id}`));
    await done(text.removed(email));
  };
  const buttons = (member) => html`
    <div class="row-actions">
      <${OfOne} what=${text.change.button} who=${member.email} onClick=${() => setOpen({ member, isRole: true })} />
      <${OfOne} what=${text.remove} who=${member.email} isDanger onClick=${() => setOpen({ member })} />
    </div>`;
  const row = (member) => ({
    key: member.id,
    cells: [
      html`<span class="wrap">${member.email}</span>${isMe(member) && html` <${Badge}>${text.you}<//>`}`, html`<${Role} of=${member.role} />`,
      ...(isOwner() ? [buttons(member)] : []),
    ],
  });
  const { who, role, actions } = text.columns;
  return html`
    <${Loaded} of=${pages}>${(members) => html`
      <${Table} label=${text.title} columns=${isOwner() ? [who, role, actions] : [who, role]} rows=${members.map(row)} /><${More} next=${pages.next} />`}<//>
    ${open?.isRole && html`<${ChangeRole} member=${open.member} close=${close} done=${done} />`}
    ${open && !open.isRole && html`
      <${Confirm} asks=${removal(open.member)} act=${() => remove(open.member)} close=${close} />`}`;
}

function InvitationList({ pages, sent, done }) {
  const [run, busy, error] = useAct();
  const [asked, setAsked] = useState(null);
  const again = ({ email, role }) => run(async () => sent(await ask('POST', own('/invitations'), { email, role })));
  const withdraw = async ({ id, email }) => {
    await ask('DELETE', own(`/invitations/${id}`));
    await done(text.withdrawn(email));
  };
  const row = (invitation) => {
    const { id, email, role, created_at: created, expires_at: ends } = invitation;
    return {
      key: id,
      cells: [
        html`<span class="wrap">${email}</span>`, html`<${Role} of=${role} />`, html`<${Time} of=${created} />`,
        html`<${Time} of=${ends} />${new Date(ends) <= new Date() && html` <${Badge} of="failed">${text.expired}<//>`}`,
        html`<div class="row-actions">
          <${OfOne} what=${text.again} who=${email} disabled=${busy} onClick=${() => again(invitation)} />
          <${OfOne} what=${text.withdraw} who=${email} isDanger onClick=${() => setAsked(invitation)} />
        </div>`,
      ],
    };
  };
  return html`
    <section class="stack tight" aria-labelledby="invitations">
      <h2 id="invitations">${text.invitations}</h2>
      ${error && html`<p class="error block" role="alert">${error.message}</p>`}
      <${Loaded} of=${pages}>${(invitations) => invitations.length
        ? html`<${Table} label=${text.invitations} columns=${Object.values(text.invitationColumns)} rows=${invitations.map(row)} /><${More} next=${pages.next} />`
        : html`<p class="muted">${text.noInvitations}</p>`}<//>
      ${asked && html`
        <${Confirm} asks=${{ ...text.confirmWithdraw, title: text.confirmWithdraw.title(asked.email) }}
          act=${() => withdraw(asked)} close=${() => setAsked(null)} />`}
    </section>`;
}

function ChangeWorkspace({ workspace, countries, close, done }) {
  const act = async (values) => {
    // What somebody else has changed meanwhile stays.
    const changes = [...values].filter(([name, value]) => value !== workspace[name]);
    if (!changes.length) return;
    await ask('PATCH', own(), Object.fromEntries(changes));
    // Its name stands in the frame too.
    me.value = await ask('GET', '/me');
    await done(text.workspace.changed);
  };
  return html`
    <${FormDialog} title=${text.workspace.dialog} act=${act} submit=${words.save} close=${close}>
      <${Field} name="name" label=${text.workspace.name} defaultValue=${workspace.name} required maxlength="100" data-message=${text.workspace.noName} autofocus />
      <${Select} name="country" label=${text.workspace.country} hint=${text.workspace.countryHint}
        options=${countryChoices(countries)} defaultValue=${workspace.country} />
      <${Select} name="timezone" label=${text.workspace.timezone} hint=${text.workspace.timezoneHint}
        options=${zoneChoices(countries, workspace.timezone)} defaultValue=${workspace.timezone} />
    <//>`;
}

async function loadWorkspace() {
  const [workspace, countries] = await Promise.all([ask('GET', own()), ask('GET', '/countries')]);
  return { workspace, countries: countries.data };
}

function Workspace({ done }) {
  const loaded = useLoad(loadWorkspace, []);
  const [isOpen, setIsOpen] = useState(false);
  const changed = async (said) => {
    await loaded.reload();
    await done(said);
  };
  return html`
    <section class="stack tight" aria-labelledby="workspace">
      <h2 id="workspace">${text.workspace.title}</h2>
      <${Loaded} of=${loaded}>${({ workspace, countries }) => html`
        <${Facts} of=${[
          [text.workspace.name, html`<bdi>${workspace.name}</bdi>`], [text.workspace.slug, html`<code>${workspace.slug}</code>`],
          [text.workspace.country, countryChoices([workspace])[0][1]], [text.workspace.timezone, workspace.timezone.replaceAll('_', ' ')],
          ...(workspace.node ? [[text.workspace.node, html`<bdi>${workspace.node}</bdi>`]] : []),
        ]} />
        ${isOwner() && html`<div class="actions left"><button class="button quiet" onClick=${() => setIsOpen(true)}>${text.workspace.button}</button></div>`}
        ${isOpen && html`<${ChangeWorkspace} workspace=${workspace} countries=${countries} close=${() => setIsOpen(false)} done=${changed} />`}`}<//>
    </section>`;
}

const NOBODY = { data: [], has_more: false };

export function Members() {
  const members = usePages((cursor) => ask('GET', own(`/members${query({ cursor, limit: 50 })}`)), []);
  // Nobody else may read them.
  const invitations = usePages((cursor) => (isOwner() ? ask('GET', own(`/invitations${query({ cursor, limit: 50 })}`)) : NOBODY), []);
  const [isInviting, setIsInviting] = useState(false);
  const [link, setLink] = useState(null);
  const [said, setSaid] = useState('');
  const done = async (what) => {
    setSaid(what);
    await Promise.all([members.reload(), invitations.reload()]);
  };
  const sent = async (invitation) => {
    await done(invitation.url ? '' : text.sent(invitation.email));
    if (invitation.url) setLink(invitation);
  };
  return html`
    <${Heading} title=${text.title} />
    <div class="stack tight">
      ${isOwner() ? html`<div class="actions left"><button class="button" onClick=${() => setIsInviting(true)}>${text.invite.button}</button></div>`
        : html`<p class="muted">${text.notOwner}</p>`}
      <div role="status">${said && html`<p class="notice">${said}</p>`}</div>
    </div>
    <${MemberList} pages=${members} done=${done} />
    <p class="hint">${text.roles}</p>
    ${isOwner() && html`<${InvitationList} pages=${invitations} sent=${sent} done=${done} />`}
    <${Workspace} done=${done} />
    ${isInviting && html`<${Invite} sent=${sent} close=${() => setIsInviting(false)} />`}
    ${link && !isInviting && html`
      <${Note} title=${text.link.title(link.email)} close=${() => setLink(null)}>
        <p>${text.link.text}</p><${Secret} value=${link.url} label=${text.link.label} />
      <//>`}`;
}
