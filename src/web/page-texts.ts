import type { Locale } from '../lib/messages.ts'

export type AccountPage = 'verify-email' | 'reset-password' | 'set-up'

type Page = { title: string; lead: string; button: string; done: string }
type Texts = {
  email: string
  password: string
  passwordHint: string
  busy: string
  offline: string
  expired: string
  noScript: string
  pages: Record<AccountPage, Page>
}

/** Every text of the account pages. */
export const pageTexts: Record<Locale, Texts> = {
  en: {
    email: 'E-mail address',
    password: 'New password',
    passwordHint: 'At least 8 characters.',
    busy: 'One moment …',
    offline: 'The server cannot be reached. Please try again.',
    expired: 'This link does not work any more: it was used, or its time is over.',
    noScript: 'This page needs JavaScript.',
    pages: {
      'verify-email': {
        title: 'Confirm your e-mail address',
        lead: 'Press the button to confirm that this address is yours.',
        button: 'Confirm address',
        done: 'Thank you: your address is confirmed. You can close this page.',
      },
      'reset-password': {
        title: 'Set a new password',
        lead: 'All devices are logged out.',
        button: 'Set password',
        done: 'Your password is set. Log in with it again.',
      },
      'set-up': {
        title: 'Make the first admin',
        lead: 'This server has no admin yet. The link works once.',
        button: 'Make admin',
        done: 'The admin account is ready. You can close this page.',
      },
    },
  },
  de: {
    email: 'E-Mail-Adresse',
    password: 'Neues Passwort',
    passwordHint: 'Mindestens 8 Zeichen.',
    busy: 'Einen Moment …',
    offline: 'Der Server ist nicht erreichbar. Bitte versuchen Sie es noch einmal.',
    expired: 'Dieser Link gilt nicht mehr: er wurde benutzt, oder seine Zeit ist um.',
    noScript: 'Diese Seite braucht JavaScript.',
    pages: {
      'verify-email': {
        title: 'E-Mail-Adresse bestätigen',
        lead: 'Bestätigen Sie mit dem Knopf, dass diese Adresse Ihnen gehört.',
        button: 'Adresse bestätigen',
        done: 'Vielen Dank: Ihre Adresse ist bestätigt. Sie können diese Seite schließen.',
      },
      'reset-password': {
        title: 'Neues Passwort setzen',
        lead: 'Alle Geräte werden abgemeldet.',
        button: 'Passwort setzen',
        done: 'Ihr Passwort ist gesetzt. Melden Sie sich damit neu an.',
      },
      'set-up': {
        title: 'Ersten Administrator anlegen',
        lead: 'Dieser Server hat noch keinen Administrator. Der Link gilt einmal.',
        button: 'Administrator anlegen',
        done: 'Das Konto ist bereit. Sie können diese Seite schließen.',
      },
    },
  },
  es: {
    email: 'Correo electrónico',
    password: 'Nueva contraseña',
    passwordHint: 'Al menos 8 caracteres.',
    busy: 'Un momento …',
    offline: 'No se puede acceder al servidor. Inténtelo de nuevo.',
    expired: 'Este enlace ya no sirve: se ha usado o ha caducado.',
    noScript: 'Esta página necesita JavaScript.',
    pages: {
      'verify-email': {
        title: 'Confirme su correo electrónico',
        lead: 'Pulse el botón para confirmar que esta dirección es suya.',
        button: 'Confirmar dirección',
        done: 'Gracias: su dirección está confirmada. Puede cerrar esta página.',
      },
      'reset-password': {
        title: 'Establecer una nueva contraseña',
        lead: 'Se cierra la sesión en todos los dispositivos.',
        button: 'Establecer contraseña',
        done: 'Su contraseña está establecida. Vuelva a iniciar sesión con ella.',
      },
      'set-up': {
        title: 'Crear el primer administrador',
        lead: 'Este servidor aún no tiene administrador. El enlace sirve una vez.',
        button: 'Crear administrador',
        done: 'La cuenta está lista. Puede cerrar esta página.',
      },
    },
  },
  fr: {
    email: 'Adresse e-mail',
    password: 'Nouveau mot de passe',
    passwordHint: 'Au moins 8 caractères.',
    busy: 'Un instant …',
    offline: 'Le serveur est injoignable. Veuillez réessayer.',
    expired: 'Ce lien ne fonctionne plus : il a été utilisé ou a expiré.',
    noScript: 'Cette page a besoin de JavaScript.',
    pages: {
      'verify-email': {
        title: 'Confirmez votre adresse e-mail',
        lead: 'Appuyez sur le bouton pour confirmer que cette adresse est la vôtre.',
        button: "Confirmer l'adresse",
        done: 'Merci : votre adresse est confirmée. Vous pouvez fermer cette page.',
      },
      'reset-password': {
        title: 'Définir un nouveau mot de passe',
        lead: 'Tous les appareils sont déconnectés.',
        button: 'Définir le mot de passe',
        done: 'Votre mot de passe est défini. Reconnectez-vous avec celui-ci.',
      },
      'set-up': {
        title: 'Créer le premier administrateur',
        lead: "Ce serveur n'a pas encore d'administrateur. Le lien fonctionne une fois.",
        button: "Créer l'administrateur",
        done: 'Le compte est prêt. Vous pouvez fermer cette page.',
      },
    },
  },
  pt: {
    email: 'E-mail',
    password: 'Nova palavra-passe',
    passwordHint: 'Pelo menos 8 caracteres.',
    busy: 'Um momento …',
    offline: 'Não é possível contactar o servidor. Tente novamente.',
    expired: 'Esta ligação já não funciona: foi usada ou expirou.',
    noScript: 'Esta página precisa de JavaScript.',
    pages: {
      'verify-email': {
        title: 'Confirme o seu e-mail',
        lead: 'Prima o botão para confirmar que este endereço é seu.',
        button: 'Confirmar endereço',
        done: 'Obrigado: o seu endereço está confirmado. Pode fechar esta página.',
      },
      'reset-password': {
        title: 'Definir uma nova palavra-passe',
        lead: 'A sessão termina em todos os dispositivos.',
        button: 'Definir palavra-passe',
        done: 'A sua palavra-passe está definida. Inicie sessão novamente com ela.',
      },
      'set-up': {
        title: 'Criar o primeiro administrador',
        lead: 'Este servidor ainda não tem administrador. A ligação funciona uma vez.',
        button: 'Criar administrador',
        done: 'A conta está pronta. Pode fechar esta página.',
      },
    },
  },
}
