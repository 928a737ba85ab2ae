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

// A click goes to a page that is open, which is told what was pushed, else it opens one.
self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(show(event.notification.data))
})

async function show(data) {
  const [page] = await self.clients.matchAll({ type: 'window', includeUncontrolled: true })
  if (!page) return self.clients.openWindow(self.registration.scope)
  page.postMessage({ type: 'hostline_notification', data })
  return page.focus()
}
