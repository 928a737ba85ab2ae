import type { Locale } from '../lib/messages.ts'

export type MailKind = 'verify_email' | 'reset_password' | 'password_changed'

type Texts = { subject: string; lead: string; button?: string; note: string }

/** Every text that leaves by mail. */
export const mailTexts: Record<Locale, Record<MailKind, Texts>> = {
  en: {
    verify_email: {
      subject: 'Confirm your e-mail address',
      lead: 'Please confirm that this address is yours.',
      button: 'Confirm address',
      note: 'The link works once, for 24 hours. If you did not open an account, ignore this mail.',
    },
    reset_password: {
      subject: 'Set a new password',
      lead: 'Somebody, probably you, asked to set a new password for your account.',
      button: 'Set a new password',
      note: 'The link works once, for 30 minutes. If it was not you, ignore this mail: nothing has changed.',
    },
    password_changed: {
      subject: 'Your password was changed',
      lead: 'The password of your account was just changed.',
      note: 'If it was not you, set a new password at once and tell the operator.',
    },
  },
  de: {
    verify_email: {
      subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
      lead: 'Bitte bestätigen Sie, dass diese Adresse Ihnen gehört.',
      button: 'Adresse bestätigen',
      note: 'Der Link gilt einmal und 24 Stunden lang. Wenn Sie kein Konto eröffnet haben, beachten Sie diese Mail nicht.',
    },
    reset_password: {
      subject: 'Ein neues Passwort setzen',
      lead: 'Jemand, vermutlich Sie, möchte für Ihr Konto ein neues Passwort setzen.',
      button: 'Neues Passwort setzen',
      note: 'Der Link gilt einmal und 30 Minuten lang. Waren Sie es nicht, beachten Sie diese Mail nicht: es hat sich nichts geändert.',
    },
    password_changed: {
      subject: 'Ihr Passwort wurde geändert',
      lead: 'Das Passwort Ihres Kontos wurde soeben geändert.',
      note: 'Waren Sie es nicht, setzen Sie sofort ein neues Passwort und melden Sie sich beim Betreiber.',
    },
  },
  es: {
    verify_email: {
      subject: 'Confirme su correo electrónico',
      lead: 'Confirme que esta dirección es suya.',
      button: 'Confirmar dirección',
      note: 'El enlace sirve una vez, durante 24 horas. Si no ha abierto una cuenta, ignore este mensaje.',
    },
    reset_password: {
      subject: 'Establezca una nueva contraseña',
      lead: 'Alguien, probablemente usted, ha pedido una nueva contraseña para su cuenta.',
      button: 'Establecer contraseña',
      note: 'El enlace sirve una vez, durante 30 minutos. Si no ha sido usted, ignore este mensaje: nada ha cambiado.',
    },
    password_changed: {
      subject: 'Su contraseña ha cambiado',
      lead: 'La contraseña de su cuenta acaba de cambiar.',
      note: 'Si no ha sido usted, establezca una nueva contraseña de inmediato y avise al operador.',
    },
  },
  fr: {
    verify_email: {
      subject: 'Confirmez votre adresse e-mail',
      lead: 'Veuillez confirmer que cette adresse est la vôtre.',
      button: "Confirmer l'adresse",
      note: "Le lien fonctionne une fois, pendant 24 heures. Si vous n'avez pas ouvert de compte, ignorez ce message.",
    },
    reset_password: {
      subject: 'Définir un nouveau mot de passe',
      lead: "Quelqu'un, sans doute vous, a demandé un nouveau mot de passe pour votre compte.",
      button: 'Définir un mot de passe',
      note: "Le lien fonctionne une fois, pendant 30 minutes. Si ce n'était pas vous, ignorez ce message : rien n'a changé.",
    },
    password_changed: {
      subject: 'Votre mot de passe a été modifié',
      lead: "Le mot de passe de votre compte vient d'être modifié.",
      note: "Si ce n'était pas vous, définissez aussitôt un nouveau mot de passe et prévenez l'opérateur.",
    },
  },
  pt: {
    verify_email: {
      subject: 'Confirme o seu e-mail',
      lead: 'Confirme que este endereço é seu.',
      button: 'Confirmar endereço',
      note: 'A ligação funciona uma vez, durante 24 horas. Se não abriu uma conta, ignore esta mensagem.',
    },
    reset_password: {
      subject: 'Definir uma nova palavra-passe',
      lead: 'Alguém, provavelmente você, pediu uma nova palavra-passe para a sua conta.',
      button: 'Definir palavra-passe',
      note: 'A ligação funciona uma vez, durante 30 minutos. Se não foi você, ignore esta mensagem: nada mudou.',
    },
    password_changed: {
      subject: 'A sua palavra-passe foi alterada',
      lead: 'A palavra-passe da sua conta acabou de ser alterada.',
      note: 'Se não foi você, defina de imediato uma nova palavra-passe e avise o operador.',
    },
  },
}

/** Subject, text and HTML of a mail. `link` belongs to the button of the kinds that have one. */
export function renderMail(kind: MailKind, locale: Locale, link?: string) {
  const { subject, lead, button, note } = mailTexts[locale][kind]
  const text = [lead, ...(link === undefined ? [] : [link]), note].join('\n\n')
  const anchor =
    link === undefined
      ? ''
      : `<p><a href="${link}" style="display:inline-block;padding:12px 20px;background:#1d4ed8;color:#fff;border-radius:6px;text-decoration:none">${button}</a></p><p style="color:#555;font-size:13px;word-break:break-all">${link}</p>`
  const html = `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><title>${subject}</title></head><body style="font-family:sans-serif;line-height:1.5;color:#1c2330"><p>${lead}</p>${anchor}<p style="color:#555">${note}</p></body></html>`
  return { subject, text, html }
}

/** What surrounds notifications that were not read. */
export const digestTexts: Record<Locale, { note: string }> = {
  en: { note: 'You get this mail because you have not read it in the app.' },
  de: { note: 'Sie erhalten diese Mail, weil Sie es in der App nicht gelesen haben.' },
  es: { note: 'Recibe este mensaje porque no lo ha leído en la aplicación.' },
  fr: { note: 'Vous recevez ce message car vous ne l’avez pas lu dans l’application.' },
  pt: { note: 'Recebe esta mensagem porque não a leu na aplicação.' },
}

/** One mail for several notifications, oldest first. What they say may come from anybody. */
export function renderDigest(locale: Locale, items: readonly { title: string; body: string }[]) {
  const { note } = digestTexts[locale]
  const [first] = items
  const line = (first?.title ?? '').replace(/[\p{Cc}\s]+/gu, ' ')
  const subject = items.length > 1 ? `${line} (${items.length})` : line
  const parts = items.map(({ title, body }) => [title, body].map(Bun.escapeHTML))
  const html = parts.map(
    ([title, body]) => `<p><b>${title}</b></p><p style="white-space:pre-wrap">${body}</p>`,
  )
  return {
    subject,
    text: [...items.map(({ title, body }) => `${title}\n\n${body}`), note].join('\n\n'),
    html: `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><title>${Bun.escapeHTML(subject)}</title></head><body style="font-family:sans-serif;line-height:1.5;color:#1c2330">${html.join('')}<p style="color:#555">${note}</p></body></html>`,
  }
}

type NewTicketMail = {
  id: string
  subject: string
  body: string
  category: string
  priority: string
  /** The name and the address of who asks. */
  from: string
}

/** Tells the operator of a new ticket, in English. Everything in it may come from a stranger. */
export function renderTicketMail({ id, subject, body, category, priority, from }: NewTicketMail) {
  const lead = `${from} opened ticket ${id} (${category}, priority ${priority}).`
  const line = subject.replace(/[\p{Cc}\s]+/gu, ' ')
  const [safeLead, safeLine, safeBody] = [lead, line, body].map(Bun.escapeHTML)
  return {
    subject: `New ticket: ${line}`,
    text: [lead, line, body].join('\n\n'),
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${safeLine}</title></head><body style="font-family:sans-serif;line-height:1.5;color:#1c2330"><p>${safeLead}</p><p><b>${safeLine}</b></p><p style="white-space:pre-wrap">${safeBody}</p></body></html>`,
  }
}
