import type { Locale } from '../../lib/messages.ts'
import type { NotificationType } from '../../lib/vocabulary.ts'

/** A text may name values in braces; when one of them is missing, what is `bare` takes its place. */
type Texts = { title: string; bareTitle?: string; body: string; bare?: string }

/** What a notification says when whoever makes it gives no text of their own. */
export const notificationTexts: Record<Locale, Record<NotificationType, Texts>> = {
  en: {
    call_incoming: { title: 'Incoming call', body: 'A guest is waiting for you.' },
    call_missed: { title: 'Missed call', body: 'A guest waited for you in vain.' },
    payment_captured: {
      title: 'Payment received',
      body: 'You received {amount} {currency}.',
      bare: 'A payment was received.',
    },
    payout_completed: {
      title: 'Payout sent',
      body: '{amount} {currency} are on their way to your bank.',
      bare: 'A payout is on its way to your bank.',
    },
    payout_failed: {
      title: 'Payout failed',
      body: 'The payout of {amount} {currency} to your bank failed.',
      bare: 'A payout to your bank failed.',
    },
    follow_new: {
      title: 'New follower',
      body: '{follower_name} follows you now.',
      bare: 'Somebody follows you now.',
    },
    support_reply: {
      title: 'Support has answered: {subject}',
      bareTitle: 'Support has answered',
      body: 'There is an answer to your request.',
    },
    broadcast: { title: 'News', body: 'There is news for you.' },
  },
  de: {
    call_incoming: { title: 'Eingehender Anruf', body: 'Ein Gast wartet auf Sie.' },
    call_missed: { title: 'Verpasster Anruf', body: 'Ein Gast hat vergeblich auf Sie gewartet.' },
    payment_captured: {
      title: 'Zahlung eingegangen',
      body: 'Sie haben {amount} {currency} erhalten.',
      bare: 'Eine Zahlung ist eingegangen.',
    },
    payout_completed: {
      title: 'Auszahlung unterwegs',
      body: '{amount} {currency} sind unterwegs zu Ihrer Bank.',
      bare: 'Eine Auszahlung ist unterwegs zu Ihrer Bank.',
    },
    payout_failed: {
      title: 'Auszahlung fehlgeschlagen',
      body: 'Die Auszahlung von {amount} {currency} an Ihre Bank ist fehlgeschlagen.',
      bare: 'Eine Auszahlung an Ihre Bank ist fehlgeschlagen.',
    },
    follow_new: {
      title: 'Neuer Follower',
      body: '{follower_name} folgt Ihnen jetzt.',
      bare: 'Jemand folgt Ihnen jetzt.',
    },
    support_reply: {
      title: 'Der Support hat geantwortet: {subject}',
      bareTitle: 'Der Support hat geantwortet',
      body: 'Es gibt eine Antwort auf Ihre Anfrage.',
    },
    broadcast: { title: 'Neuigkeiten', body: 'Es gibt Neuigkeiten für Sie.' },
  },
  es: {
    call_incoming: { title: 'Llamada entrante', body: 'Un invitado le está esperando.' },
    call_missed: { title: 'Llamada perdida', body: 'Un invitado le esperó en vano.' },
    payment_captured: {
      title: 'Pago recibido',
      body: 'Ha recibido {amount} {currency}.',
      bare: 'Se ha recibido un pago.',
    },
    payout_completed: {
      title: 'Transferencia enviada',
      body: '{amount} {currency} van de camino a su banco.',
      bare: 'Una transferencia va de camino a su banco.',
    },
    payout_failed: {
      title: 'Transferencia fallida',
      body: 'La transferencia de {amount} {currency} a su banco ha fallado.',
      bare: 'Una transferencia a su banco ha fallado.',
    },
    follow_new: {
      title: 'Nuevo seguidor',
      body: '{follower_name} ahora le sigue.',
      bare: 'Alguien ahora le sigue.',
    },
    support_reply: {
      title: 'Soporte ha respondido: {subject}',
      bareTitle: 'Soporte ha respondido',
      body: 'Hay una respuesta a su solicitud.',
    },
    broadcast: { title: 'Novedades', body: 'Hay novedades para usted.' },
  },
  fr: {
    call_incoming: { title: 'Appel entrant', body: 'Un invité vous attend.' },
    call_missed: { title: 'Appel manqué', body: 'Un invité vous a attendu en vain.' },
    payment_captured: {
      title: 'Paiement reçu',
      body: 'Vous avez reçu {amount} {currency}.',
      bare: 'Un paiement a été reçu.',
    },
    payout_completed: {
      title: 'Virement envoyé',
      body: '{amount} {currency} sont en route vers votre banque.',
      bare: 'Un virement est en route vers votre banque.',
    },
    payout_failed: {
      title: 'Échec du virement',
      body: 'Le virement de {amount} {currency} vers votre banque a échoué.',
      bare: 'Un virement vers votre banque a échoué.',
    },
    follow_new: {
      title: 'Nouvel abonné',
      body: '{follower_name} vous suit désormais.',
      bare: 'Quelqu’un vous suit désormais.',
    },
    support_reply: {
      title: 'Le support a répondu : {subject}',
      bareTitle: 'Le support a répondu',
      body: 'Une réponse à votre demande est arrivée.',
    },
    broadcast: { title: 'Nouvelles', body: 'Il y a du nouveau pour vous.' },
  },
  pt: {
    call_incoming: { title: 'Chamada recebida', body: 'Um convidado está à sua espera.' },
    call_missed: { title: 'Chamada perdida', body: 'Um convidado esperou por si em vão.' },
    payment_captured: {
      title: 'Pagamento recebido',
      body: 'Recebeu {amount} {currency}.',
      bare: 'Foi recebido um pagamento.',
    },
    payout_completed: {
      title: 'Transferência enviada',
      body: '{amount} {currency} estão a caminho do seu banco.',
      bare: 'Uma transferência está a caminho do seu banco.',
    },
    payout_failed: {
      title: 'Transferência falhada',
      body: 'A transferência de {amount} {currency} para o seu banco falhou.',
      bare: 'Uma transferência para o seu banco falhou.',
    },
    follow_new: {
      title: 'Novo seguidor',
      body: '{follower_name} agora segue-o.',
      bare: 'Alguém agora segue-o.',
    },
    support_reply: {
      title: 'O suporte respondeu: {subject}',
      bareTitle: 'O suporte respondeu',
      body: 'Há uma resposta ao seu pedido.',
    },
    broadcast: { title: 'Novidades', body: 'Há novidades para si.' },
  },
}

/** Title and body of a type in a language, with the values that they name. */
export function textOf(locale: Locale, type: NotificationType, values: Record<string, string>) {
  const { title, bareTitle = title, body, bare = body } = notificationTexts[locale][type]
  return { title: filled(title, values) ?? bareTitle, body: filled(body, values) ?? bare }
}

function filled(text: string, values: Record<string, string>): string | undefined {
  const names = [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  if (!names.every((name) => values[name])) return undefined
  return text.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')
}
