import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addRevocation } from '../../../src/authn/index.ts'
import { eventually } from '../../support/eventually.ts'
import { type Kubectl, kubectlAt } from '../../support/kubectl.ts'
import { LoggedProcess } from '../../support/logged-process.ts'
import { findKubectl, findProgram, pathOrReason } from '../../support/peers.ts'
import { allOfProxy, outwardAddress, ServiceProxyLab } from '../../support/service-proxy-lab.ts'
import { httpTarget } from '../../support/tcp-target.ts'
import { startNaiveAddon } from './naive-addon.ts'

const kubectlPath = pathOrReason(findKubectl('1.36'))
const chromiumPath = pathOrReason(findProgram('chromium'))
const isHere = kubectlPath !== undefined && outwardAddress !== undefined

/** Runs in a page: creates ConfigMaps in every way that a page has, and opens a WebSocket to the add-on. */
async function writeFromPage({
  target,
  path,
  isOwn,
}: {
  target: string
  path: string
  isOwn: boolean
}) {
  const id = Math.random().toString(36).slice(2)
  const bodyOf = (name: string) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })
  const json = { headers: { 'content-type': 'application/json' } }
  const ways: [string, (body: string) => RequestInit][] = [
    [`${id}-json`, (body) => ({ ...json, body })],
    [`${id}-text`, (body) => ({ mode: 'no-cors', body })],
    [`${id}-untyped`, (body) => ({ mode: 'no-cors', body: new Blob([body]) })],
  ]
  const used = isOwn ? ways.slice(0, 1) : ways
  for (const [name, how] of used)
    await fetch(target, { method: 'POST', ...how(bodyOf(name)) }).catch(() => undefined)
  const socket = await new Promise<string>((resolve) => {
    const opened = new WebSocket(
      `${target.replace(/^http/, 'ws').replace(/\/api.*/, '')}${path}live`,
    )
    opened.onopen = () => resolve('open')
    opened.onclose = () => resolve('closed')
  })
  return { names: used.map(([name]) => name), socket }
}

describe.skipIf(!isHere)('behind stock kubectl proxy', () => {
  let lab: ServiceProxyLab
  let addon: Awaited<ReturnType<typeof startNaiveAddon>>
  let directory = ''
  const programs: LoggedProcess[] = []
  const path = '/api/v1/proxy/namespaces/default/services/naive/'

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'addon-kubectl-'))
    // Pages of all other namespaces are shown only, and run nothing.
    const flags = ['--addon-recheck-period', '500ms', '--addon-same-origin-namespace', 'default']
    lab = await ServiceProxyLab.open(flags)
    addon = await startNaiveAddon(outwardAddress ?? '')
    await lab.addon('naive', addon)
    for (const name of ['ann', 'bob'])
      await lab.user(name, [
        allOfProxy('get', 'create'),
        { apiGroups: ['addon.sallyport.dev'], resources: ['sessions'], verbs: ['*'] },
        { apiGroups: [''], resources: ['configmaps'], verbs: ['create', 'get'] },
      ])
  })
  afterAll(async () => {
    for (const program of programs) await program.stop('SIGKILL')
    await lab?.close()
    await addon?.close()
    await rm(directory, { recursive: true, force: true })
  })

  /** A kubeconfig with a certificate of its own. */
  async function kubeconfigOf(user: string): Promise<string> {
    const { cert = '', key = '' } = await lab.server.issue(user)
    const base64 = (text: string): string => Buffer.from(text).toString('base64')
    const file = join(directory, `${user}.kubeconfig`)
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'lab',
      contexts: [{ name: 'lab', context: { cluster: 'lab', user, namespace: 'default' } }],
      clusters: [
        {
          name: 'lab',
          cluster: {
            server: lab.server.serving.url,
            'certificate-authority-data': base64(lab.server.serving.pki.clusterCa.bundlePem),
          },
        },
      ],
      users: [
        {
          name: user,
          user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) },
        },
      ],
    }
    await writeFile(file, JSON.stringify(config), { mode: 0o600 })
    return file
  }

  /** `kubectl proxy` of a user; returns its address. */
  async function proxyOf(user: string): Promise<string> {
    const args = ['proxy', '-p', '0', '--kubeconfig', await kubeconfigOf(user)]
    const program = new LoggedProcess(kubectlPath ?? '', args)
    programs.push(program)
    const line = await eventually('kubectl proxy', () =>
      program.lines.find((each) => each.includes('Starting to serve on')),
    )
    return `http://localhost:${line.split(':').at(-1)}`
  }

  const kubectlOf = async (user: string): Promise<Kubectl> =>
    kubectlAt(kubectlPath ?? '', await kubeconfigOf(user), join(directory, 'cache'))

  test('the old URL form with add-auth reaches the add-on as the user of the kubeconfig [ADDON-R4, ADDON-R8]', async () => {
    const [ann, bob] = await Promise.all([proxyOf('ann'), proxyOf('bob')])
    const userAt = async (proxy: string): Promise<string> =>
      (await fetch(`${proxy}${path}api/user?add-auth=true`)).text()
    expect(await Promise.all([userAt(ann), userAt(bob), userAt(ann)])).toEqual([
      'ann',
      'bob',
      'ann',
    ])
    expect(await (await fetch(`${ann}${path}api/user`)).text()).toBe('nobody')
  })

  describe.skipIf(chromiumPath === undefined)('a browser', () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await chromium.launch({
        executablePath: chromiumPath ?? '',
        args: ['--no-sandbox'],
      })
    })
    afterAll(() => browser?.close())

    async function opened(user: string) {
      const context = await browser.newContext()
      const page = await context.newPage()
      const proxy = await proxyOf(user)
      await page.goto(`${proxy}${path}?add-auth=true#/workload`)
      const shown = (id: string) => page.locator(`#${id}`)
      return { page, shown, proxy }
    }

    test('shows the user in the page, in its requests and in its WebSocket; two users at once [ADDON-R14, ADDON-R8]', async () => {
      const both = await Promise.all([opened('ann'), opened('bob')])
      for (const [at, name] of ['ann', 'bob'].entries()) {
        const view = both[at]
        for (const id of ['page', 'xhr', 'socket'])
          await eventually(
            `${name} in ${id}`,
            async () => (await view?.shown(id).textContent()) === name,
          )
      }
      // The image is named from the root: it comes back to the add-on by the rewritten page, and as the user.
      expect(addon.asked).toContain('/pixel.gif ann')
      expect(addon.asked).toContain('/live?x=1 bob')
      for (const { page } of both) await page.context().close()
    })

    test('a page of one add-on cannot use another one [ADDON-T58]', async () => {
      const other = await lab.backend((_request, response) => response.end('the secret of another'))
      await lab.addon('other', other)
      const { page } = await opened('ann')
      const status = await page.evaluate(
        async () =>
          (await fetch('/api/v1/proxy/namespaces/default/services/other/', { method: 'POST' }))
            .status,
      )
      expect(status).toBe(403)
      await page.context().close()
    })

    test('[SEC-R401] a page of another origin writes nothing and opens no WebSocket; a page of this one does', async () => {
      const proxy = await proxyOf('ann')
      const target = `${proxy}/api/v1/namespaces/default/configmaps`
      const blank: RequestListener = (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<title>elsewhere</title>')
      }
      const otherPort = await httpTarget(blank, '127.0.0.1')
      const otherSite = await lab.backend(blank)
      const pages = [
        [`http://localhost:${otherPort.port}/`, false],
        [`http://${outwardAddress}:${otherSite.port}/`, false],
        [proxy, true],
      ] as const
      for (const [address, isOwn] of pages) {
        const page = await (await browser.newContext()).newPage()
        await page.goto(address)
        const outcome = await page.evaluate(writeFromPage, { target, path, isOwn })
        expect([address, outcome.socket]).toEqual([address, isOwn ? 'open' : 'closed'])
        const made = await Promise.all(outcome.names.map((name) => fetch(`${target}/${name}`)))
        expect(made.map(({ status }) => status)).toEqual(
          outcome.names.map(() => (isOwn ? 200 : 404)),
        )
        await page.context().close()
      }
      await otherPort.close()
    })

    test('kubectl shows the live session, and deleting it ends it at both ends [ADDON-P8]', async () => {
      const { page, shown } = await opened('ann')
      await eventually(
        'the socket is open',
        async () => (await shown('socket').textContent()) === 'ann',
      )
      const kubectl = await kubectlOf('bob')
      expect(await kubectl('explain sessions.addon.sallyport.dev.spec')).toContain(
        'Who is behind it.',
      )
      const table = await kubectl('get sessions.addon.sallyport.dev')
      expect(table).toMatch(/^NAME\s+USER\s+TARGET\s+TYPE\s+SENT\s+RECEIVED\s+AGE\n/)
      const row = table.split('\n').find((line) => /\sann\s+services\/naive\s+Tunnel\s/.test(line))
      expect(row).toBeDefined()
      await kubectl(`delete sessions.addon.sallyport.dev ${row?.split(/\s+/)[0]}`)
      await eventually(
        'the page knows',
        async () => (await shown('socket').textContent()) === 'closed',
      )
      await page.context().close()
    })

    test('revocation closes the WebSocket of the page and blocks its next request [ADDON-R28, ADDON-R43]', async () => {
      await lab.user('eve', [allOfProxy('get', 'create')])
      const { page, shown } = await opened('eve')
      await eventually(
        'the socket is open',
        async () => (await shown('socket').textContent()) === 'eve',
      )
      await addRevocation(
        lab.server.serving.view,
        { type: 'user', value: 'eve' },
        AbortSignal.timeout(5_000),
      )
      await eventually(
        'the page knows',
        async () => (await shown('socket').textContent()) === 'closed',
      )
      const status = await page.evaluate(async () => (await fetch('api/user')).status)
      expect(status).toBe(401)
      await page.context().close()
    })
  })
})
