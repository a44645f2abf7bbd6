import { ApiError } from '../../common.js';
import { call, mayWrite } from '../api.js';
import { Area, Check, Field, Form } from '../form.js';
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

/** What shows that the person has agreed, as the API takes it. */
function consentOf(values) {
  const said = (name) => values.get(`consent.${name}`).trim();
  const reference = said('reference');
  return JSON.stringify({
    speaker_name: said('speaker_name'), given_at: new Date(said('given_at')).toISOString(), statement: said('statement'), ...(reference && { reference }),
  });
}

/** Who calls real people with a clone has to show it. */
const Consent = () => html`
  <h2>${text.form.proof}</h2>
  <p class="hint">${text.form.proofHint}</p>
  <${Field} name="consent.speaker_name" label=${text.form.speaker} required maxlength="200" autocomplete="off" />
  <${Field} name="consent.given_at" label=${text.form.givenAt} type="datetime-local" required />
  <${Area} name="consent.statement" label=${text.form.statement} hint=${text.form.statementHint} required maxlength="1000" />
  <${Field} name="consent.reference" label=${text.form.reference} hint=${text.form.referenceHint} maxlength="200" autocomplete="off" />
  <${Field} name="consent_evidence" label=${text.form.evidence} hint=${text.form.evidenceHint} type="file" required />`;

export function NewVoice() {
  const samples = useTakes();
  const [isSending, setIsSending] = useState(false);
  const clone = async (values) => {
    check(samples);
    const isLive = place.value.env === 'live';
    if (!isLive && !values.get('consent_attested')) throw new ApiError(text.form.consentMissing, { param: 'consent_attested' });
    setIsSending(true);
    try {
      const consent = isLive ? { consent: consentOf(values) } : { consent_attested: 'true' };
      const form = formOf(samples.takes, { name: values.get('name').trim(), language: values.get('language').trim(), ...consent });
      if (isLive) form.append('consent_evidence', values.get('consent_evidence'));
      const voice = await call('POST', '/voices/clones', form);
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
        ${place.value.env === 'live'
          ? html`<${Consent} />`
          : html`<${Check} name="consent_attested" label=${text.form.consent} hint=${text.form.consentHint} value="true" />`}
        ${isSending && html`<${Sending} takes=${samples.takes} />`}
      <//>`}
    ${samples.isUnsent && html`<${Unsaved} asks=${text.confirmLeave} />`}`;
}
