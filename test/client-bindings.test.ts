import { afterAll, beforeAll, expect } from 'bun:test'
import { createConsumer } from './support/consumers.ts'
import { describeAtLength, testAtLength } from './support/faults.ts'
import { startService } from './support/service.ts'

/** Apps of four frameworks, which have nothing but the packed client. Each shows one thread, then another. */
const consumer = createConsumer({
  'react.js': `
    import { createElement as h, StrictMode } from 'react'
    import { createRoot } from 'react-dom/client'
    import { renderToString } from 'react-dom/server'
    import { useStatus, useStore } from 'hostline-client/react'
    let render
    function App({ open, client, id, view }) {
      const status = useStatus(client)
      const thread = useStore(() => open(id), [id])
      return view(h, status, thread)
    }
    export function mount(element, props) {
      // On a server nothing is open yet.
      renderToString(h(App, props))
      const root = createRoot(element)
      render = (more) => root.render(h(StrictMode, null, h(App, { ...props, ...more })))
      return { render, unmount: () => root.unmount() }
    }`,
  'preact.js': `
    import { h, render } from 'preact'
    import { useStatus, useStore } from 'hostline-client/preact'
    function App({ open, client, id, view }) {
      const status = useStatus(client)
      const thread = useStore(() => open(id), [id])
      return view(h, status, thread)
    }
    export const mount = (element, props) => ({
      render: (more) => render(h(App, { ...props, ...more }), element),
      unmount: () => render(null, element),
    })`,
  'vue.js': `
    import { createApp, createSSRApp, h, shallowReactive } from 'vue'
    import { renderToString } from 'vue/server-renderer'
    import { useStatus, useStore } from 'hostline-client/vue'
    export async function mount(element, { open, client, view }) {
      const props = shallowReactive({ id: '' })
      const App = {
        setup() {
          const status = useStatus(client)
          const thread = useStore(() => open(props.id))
          return () => view(h, status.value, thread.value)
        },
      }
      // On a server nothing stays open.
      await renderToString(createSSRApp(App))
      const app = createApp(App)
      let isMounted = false
      return {
        render(more) {
          Object.assign(props, more)
          if (!isMounted) app.mount(element)
          isMounted = true
        },
        unmount: () => app.unmount(),
      }
    }`,
  'app.svelte': `
    <script>
      import { useStatus, useStore } from 'hostline-client/svelte'
      const { open, client, chosen } = $props()
      const status = useStatus(client)
      const thread = $derived(useStore(open, $chosen))
    </script>
    <button onclick={() => $thread.send({ body: 'from svelte' })}>{$status}</button>
    {#each $thread.items as message (message.id)}<p>{message.body}</p>{/each}`,
  'svelte.js': `
    import { readFileSync, writeFileSync } from 'node:fs'
    import { compile } from 'svelte/compiler'
    import { mount as mountApp, unmount } from 'svelte'
    import { writable } from 'svelte/store'
    writeFileSync('app.js', compile(readFileSync('app.svelte', 'utf8'), { generate: 'client' }).js.code)
    const { default: App } = await import('./app.js')
    export function mount(target, { open, client }) {
      const chosen = writable('')
      let app
      return {
        render({ id }) {
          chosen.set(id)
          app ??= mountApp(App, { target, props: { open, client, chosen } })
        },
        unmount: () => unmount(app),
      }
    }`,
  'main.js': `
    import { Window } from 'happy-dom'
    import { createClient } from 'hostline-client'
    import { openThread } from 'hostline-client/state'
    const [name, baseUrl, token, first, second] = process.argv.slice(2)
    const window = new Window()
    for (const key of ['document', 'Node', 'Element', 'HTMLElement', 'SVGElement', 'Text', 'Comment', 'HTMLIFrameElement',
      'HTMLMediaElement', 'MutationObserver', 'customElements'])
      globalThis[key] = window[key] ?? window.document[key]
    globalThis.window = window
    const client = createClient({ baseUrl })
    await client.login(JSON.parse(token))
    await client.connect()

    let handlers = 0
    const { on } = client
    client.on = (...given) => {
      const remove = on(...given)
      handlers++
      return () => {
        handlers--
        remove()
      }
    }
    let opened = 0
    function open(id) {
      opened++
      const store = openThread(client, id)
      return { ...store, close() { opened--; store.close() } }
    }
    const view = (h, status, thread) => [
      h('button', { key: 'b', onClick: () => thread.send({ body: 'from ' + name }) }, status),
      ...(thread?.items ?? []).map(({ id, body }) => h('p', { key: id }, body)),
    ]
    const element = document.createElement('div')
    document.body.append(element)
    const shown = () => [...element.querySelectorAll('p')].map((it) => it.textContent).join()
    const sees = (text) => new Promise((resolve) => {
      const look = () => shown() === text && resolve()
      new window.MutationObserver(look).observe(element, { childList: true, subtree: true, characterData: true })
      look()
    })
    const { mount } = await import('./' + name + '.js')
    const app = await mount(element, { open, client, view })
    app.render({ id: first })
    await sees('hello')
    const status = element.querySelector('button').textContent
    element.querySelector('button').click()
    await sees('hello,from ' + name)
    app.render({ id: second })
    await sees('elsewhere')
    const during = opened
    app.unmount()
    await new Promise(setImmediate)
    console.log(status, during, opened, handlers)
    client.close()
    process.exit()`,
})
afterAll(() => consumer[Symbol.dispose]())

describeAtLength('an app', () => {
  beforeAll(() => consumer.addClient())

  testAtLength.each(['react', 'preact', 'vue', 'svelte'])(
    'of %s shows a thread that changes, then another one, and leaves nothing open',
    async (framework) => {
      await using service = await startService({ listen: true })
      const [ada, bob, carl] = await Promise.all(
        ['ada', 'bob', 'carl'].map((name) => service.register(name)),
      )
      if (!ada || !bob || !carl) throw new Error('registration failed')
      const [first, second] = [
        await service.openConversation(bob, ada),
        await service.openConversation(carl, ada),
      ]
      await service.say(bob, first, 'hello')
      await service.say(carl, second, 'elsewhere')
      const login = JSON.stringify({ email: ada.email, password: 'correct horse' })
      const ran = await consumer.node22(
        '--conditions=browser',
        'main.js',
        framework,
        service.base,
        login,
        first,
        second,
      )
      expect(ran).toEqual({ exitCode: 0, output: 'open 1 0 0\n' })
    },
  )
})
