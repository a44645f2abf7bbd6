// Forms: what is wrong is said at the field that it concerns, in the API's own words.
import { ask, passwordAsked } from './api.js';
import { copyText } from '../common.js';
import { createContext, html, useContext, useEffect, useId, useRef, useState } from './html.js';
import { useDialog } from './parts.js';
import { words } from './words.js';

const Errors = createContext({});

/** The field that an error is about: `schedule.days[0]` is the one of that name, or of `schedule.days`, or of `schedule`. */
function fieldOf(form, param) {
  const names = new Set([...form.elements].map(({ name }) => name).filter(Boolean));
  for (let name = param ?? ''; name; name = name.replace(/(^|[.[])[^.[]*$/, '')) {
    if (names.has(name)) return name;
  }
  return null;
}

/** Where it stands at the field, the message need not begin with the field's name. */
function atField({ message, param }) {
  if (!message.startsWith(param)) return message;
  const rest = message.slice(param.length).replace(/^[:\s]+/, '');
  return rest ? rest[0].toUpperCase() + rest.slice(1) : message;
}

/**
 * A form that runs `act(FormData)` once at a time. What it throws is shown at its field, or below the form. Fields are not controlled:
 * give them `defaultValue`, so that nothing is drawn over what the person is writing.
 */
export function Form({ act, submit, children, isDanger = false, leave = null, ...rest }) {
  const form = useRef(null);
  const [state, setState] = useState({ busy: false, errors: {} });
  const show = (errors) => {
    setState({ busy: false, errors });
    const [first] = Object.keys(errors);
    const field = [...form.current.elements].find(({ name }) => name === first);
    for (let fold = field?.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true;
    field?.focus();
  };
  const send = async (event) => {
    event.preventDefault();
    if (state.busy) return;
    const invalid = [...form.current.elements].filter((field) => field.willValidate && !field.checkValidity());
    if (invalid.length) return show(Object.fromEntries(invalid.map((field) => [field.name, field.dataset.message ?? field.validationMessage])));
    setState({ busy: true, errors: {} });
    try {
      await act(new FormData(form.current));
      if (form.current) setState({ busy: false, errors: {} });
    } catch (error) {
      const field = form.current && fieldOf(form.current, error.param);
      if (form.current) show({ [field ?? '']: field ? atField(error) : error.message });
    }
  };
  const forget = ({ target }) => state.errors[target.name] && setState(({ busy, errors: { [target.name]: _, ...errors } }) => ({ busy, errors }));
  return html`
    <form ref=${form} class="stack" novalidate aria-busy=${state.busy} onSubmit=${send} onInput=${forget} ...${rest}>
      <${Errors.Provider} value=${state.errors}>${children}<//>
      ${state.errors[''] && html`<p class="error block" role="alert">${state.errors['']}</p>`}
      <div class=${leave ? 'actions' : 'actions left'}>
        ${leave && html`<button type="button" class="button quiet" disabled=${state.busy} onClick=${leave}>${words.cancel}</button>`}
        <button class="button ${isDanger ? 'danger' : ''}" disabled=${state.busy}>${state.busy ? words.working : submit}</button>
      </div>
    </form>`;
}

/** Ties a control to what is said of it. */
const describedBy = (id, hint, error) => ({
  'aria-describedby': [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ') || undefined,
  'aria-invalid': error ? 'true' : undefined,
});

/** What stands around a control: its label above, a hint and its error below. `control` gets the attributes that tie them together. */
function Around({ name, label, hint, control }) {
  const id = useId();
  const error = useContext(Errors)[name];
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${control({ id, name, ...describedBy(id, hint, error) })}
      ${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
      ${error && html`<p class="error" id="${id}-error" role="alert">${error}</p>`}
    </div>`;
}

export const Field = ({ name, label, hint, type = 'text', ...rest }) => html`
  <${Around} ...${{ name, label, hint }} control=${(own) => html`<input type=${type} ...${own} ...${rest} />`} />`;

export const Area = ({ name, label, hint, rows = 4, ...rest }) => html`
  <${Around} ...${{ name, label, hint }} control=${(own) => html`<textarea rows=${rows} ...${own} ...${rest}></textarea>`} />`;

/** `options`: `[value, text]`. */
export const Select = ({ name, label, hint, options, defaultValue = '', ...rest }) => html`
  <${Around} ...${{ name, label, hint }} control=${(own) => html`
    <select ...${own} ...${rest}>${options.map(([value, text]) => html`<option key=${value} value=${value} selected=${value === defaultValue}>${text}</option>`)}</select>`} />`;

/** A box to tick. Several of one `name` are a list. */
export function Check({ name, label, hint, ...rest }) {
  const id = useId();
  const error = useContext(Errors)[name];
  return html`
    <div class="field check">
      <label for=${id}><input type="checkbox" id=${id} name=${name} ...${describedBy(id, hint, error)} ...${rest} />${' '}${label}</label>
      ${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
      ${error && html`<p class="error" id="${id}-error" role="alert">${error}</p>`}
    </div>`;
}

/** Several boxes of one name, which are a list. `options`: `[value, text]`; `chosen`: values that are ticked at first. */
export function Checks({ name, legend, options, chosen = [], ...rest }) {
  const id = useId();
  const error = useContext(Errors)[name];
  return html`
    <fieldset class="checks" aria-describedby=${error ? `${id}-error` : undefined}>
      <legend>${legend}</legend>
      ${options.map(([value, label]) => html`
        <div class="field check" key=${value}>
          <label><input type="checkbox" name=${name} value=${value} defaultChecked=${chosen.includes(value)} ...${rest} />${' '}<span class="wrap">${label}</span></label>
        </div>`)}
      ${error && html`<p class="error" id="${id}-error" role="alert">${error}</p>`}
    </fieldset>`;
}

/** A form in a dialog, which closes when it has done its work. */
export function FormDialog({ title, act, submit, close, children, isDanger = false, isNarrow = true }) {
  const { dialog, leave, closed } = useDialog(close);
  const id = useId();
  const isBusy = useRef(false);
  const done = async (values) => {
    isBusy.current = true;
    try {
      await act(values);
      leave();
    } finally {
      isBusy.current = false;
    }
  };
  return html`
    <dialog ref=${dialog} class=${isNarrow ? 'narrow' : ''} aria-labelledby=${id} onClose=${closed}
      onCancel=${(event) => isBusy.current && event.preventDefault()}>
      <div class="stack">
        <h2 id=${id}>${title}</h2>
        <${Form} act=${done} submit=${submit} leave=${leave} isDanger=${isDanger}>${children}<//>
      </div>
    </dialog>`;
}

/** Something that is shown once or copied: a secret, a link, a command. */
export function Secret({ value, label }) {
  const code = useRef(null);
  const [copied, setCopied] = useState(false);
  useEffect(() => setCopied(false), [value]);
  return html`
    <div class="secret"><code ref=${code} aria-label=${label}>${value}</code>
      <button type="button" class="button quiet small" onClick=${async () => setCopied(await copyText(code.current))}>${copied ? words.copied : words.copy}</button>
    </div>`;
}

/** Stands in the frame, and asks for the password when an act wants it again. */
export function PasswordAgain() {
  const asked = passwordAsked.value;
  if (!asked) return null;
  const act = async (values) => {
    await ask('POST', '/reauthenticate', { password: values.get('password') });
    asked.given();
  };
  return html`
    <${FormDialog} title=${words.password.title} act=${act} submit=${words.password.go} close=${asked.refused}>
      <p>${words.password.text}</p>
      <${Field} name="password" label=${words.password.label} type="password" autocomplete="current-password" required autofocus />
    <//>`;
}
