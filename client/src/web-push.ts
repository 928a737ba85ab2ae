export type PushRegistration = { pushManager: PushManager }
type PushManager = {
  getSubscription(): Promise<Subscription | null>
  subscribe(options: {
    userVisibleOnly: boolean
    applicationServerKey: string
  }): Promise<Subscription>
}
type Subscription = {
  readonly options: { readonly applicationServerKey: ArrayBuffer | null }
  unsubscribe(): Promise<boolean>
}

/** Returns the browser's subscription for this key. A subscription for another key is useless and replaced. */
export async function subscribeWith(manager: PushManager, key: string): Promise<Subscription> {
  const found = await manager.getSubscription()
  if (found && base64url(found.options.applicationServerKey) === key) return found
  await found?.unsubscribe()
  return manager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
}

function base64url(bytes: ArrayBuffer | null) {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes ?? [])))
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}
