import { ApiError } from '../../common.js';
import { call, mayWrite } from '../api.js';
import { Check, Field, Form } from '../form.js';
import { html, useState } from '../html.js';
import { Heading } from '../parts.js';
import { go, place, to } from '../place.js';
import { Unsaved } from '../unsaved.js';
import { words } from '../words.js';
import { Samples, bytesOf, check, formOf, sizeOf, useTakes } from './samples.js';

const text = words.voices;

/** A form with files takes as long as the line is slow. */
export const Sending = ({ takes }) => html`
  <div role="status"><progress aria-label=${text.sending(sizeOf(bytesOf(takes)))}></progress> ${text.sending(sizeOf(bytesOf(takes)))}</div>`;

export function NewVoice() {
  const samples = useTakes();
  const [isSending, setIsSending] = useState(false);
  const clone = async (values) => {
    check(samples);
    if (!values.get('consent_attested')) throw new ApiError(text.form.consentMissing, { param: 'consent_attested' });
    setIsSending(true);
    try {
      const texts = { name: values.get('name').trim(), language: values.get('language').trim(), consent_attested: 'true' };
      const voice = await call('POST', '/voices/clones', formOf(samples.takes, texts));
      go(to('voices', voice.id), { isSure: true });
    } catch (error) {
      throw error.code === 'not_configured' ? new ApiError(text.form.notConfigured) : error;
    } finally {
      setIsSending(false);
    }
  };
  return html`
    <${Heading} title=${text.form.title} />
    ${place.value.env === 'test' && html`<p class="notice">${text.form.test}</p>`}
    ${mayWrite() && html`
      <${Form} act=${clone} submit=${text.form.go}>
        <${Field} name="name" label=${text.form.name} required maxlength="100" autocomplete="off" />
        <${Field} name="language" label=${text.form.language} hint=${text.form.languageHint} maxlength="35" autocomplete="off" />
        <h2>${text.samples}</h2>
        <${Samples} of=${samples} />
        <${Check} name="consent_attested" label=${text.form.consent} hint=${text.form.consentHint} value="true" />
        ${isSending && html`<${Sending} takes=${samples.takes} />`}
      <//>`}
    ${samples.isUnsent && html`<${Unsaved} asks=${text.confirmLeave} />`}`;
}
