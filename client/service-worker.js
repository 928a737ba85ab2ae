// The service worker that shows what Hostline pushes to a browser. A page registers it, and then subscribes:
//   const registration = await navigator.serviceWorker.register('/service-worker.js')
//   await client.pushTokens.subscribe(registration)

self.addEventListener('push', (event) => {
  const { title, body, data, badge, tag } = event.data.json()
  event.waitUntil(
    Promise.all([
      self.registration.showNotification(title, { body, data, tag, renotify: tag !== undefined }),
      // Unread messages and notifications; not every browser has a badge.
      badge === undefined ? undefined : self.navigator.setAppBadge?.(badge),
    ]),
  )
})

// Focuses an open page of this scope and posts the notification to it. A newly opened page finds it in its URL, after
// `#hostline=`.
self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(show(event.notification.data))
})

async function show(data) {
  const { scope } = self.registration
  const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true })
  const page = pages.find(({ url }) => url.startsWith(scope))
  if (!page)
    return self.clients.openWindow(`${scope}#hostline=${encodeURIComponent(JSON.stringify(data))}`)
  page.postMessage({ type: 'hostline_notification', data })
  return page.focus()
}
