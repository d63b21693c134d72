import { mkdirSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { buildOnce } from '../../build-once.ts'
import { chromiumPath, openBrowser } from '../../support/browser.ts'
import { type Kubectl, kubectlAt } from '../../support/kubectl.ts'
import { LoggedProcess } from '../../support/logged-process.ts'
import { findKubectl, pathOrReason } from '../../support/peers.ts'
import {
  runSallyport,
  type SallyportProcess,
  startSallyport,
} from '../../support/sallyport-process.ts'

const kubectlPath = pathOrReason(findKubectl('1.36'))
const isHere = chromiumPath !== undefined && kubectlPath !== undefined
const addonPath = '/api/v1/proxy/namespaces/kube-system/services/whoami/'
/** What is looked at by people; not part of the repository. */
const screenshots = process.env['SALLYPORT_SCREENSHOTS']

const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: whoami-user, namespace: kube-system }
rules:
  - { apiGroups: [''], resources: [services/proxy], resourceNames: [whoami, 'http:whoami:'], verbs: [get, create] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: whoami-user, namespace: kube-system }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: whoami-user }
subjects: [{ kind: Group, name: visitors }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reader, namespace: default }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view }
subjects: [{ kind: User, name: jane }]
---
# Visitors are named: whoami may act for these two, and for nobody else.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: whoami-more-visitors }
rules:
  - { apiGroups: [authentication.k8s.io], resources: [users], resourceNames: [jane, bob], verbs: ['impersonate:user-info'] }
  - { apiGroups: [authentication.k8s.io], resources: [groups], resourceNames: [visitors], verbs: ['impersonate:user-info'] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: whoami-more-visitors }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: whoami-more-visitors }
subjects: [{ kind: ServiceAccount, name: whoami, namespace: kube-system }]
`

let server: SallyportProcess
let directory: string
let browser: Browser
let dist: string
const running: LoggedProcess[] = []
const contexts: BrowserContext[] = []

const userFile = (name: string): string => join(directory, `${name}.kubeconfig`)

async function createUser(name: string): Promise<void> {
  const flags = ['--group', 'visitors', '--data-dir', server.dataDirectory, '--out', userFile(name)]
  const { code, stderr } = await runSallyport(['user', 'create', name, ...flags])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
}

beforeAll(async () => {
  if (!isHere) return
  dist = await buildOnce()
  directory = await mkdtemp(join(tmpdir(), 'sallyport-browser-'))
  server = await startSallyport({
    args: ['--with', 'whoami', '--addon-recheck-period', '500ms'],
  })
  const admin: Kubectl = kubectlAt(kubectlPath ?? '', server.kubeconfig, join(directory, 'cache'))
  await admin('apply -f -', rights)
  await createUser('jane')
  await createUser('bob')
  browser = await openBrowser()
  // Both may take their time on a busy machine.
  await admin('wait --for=condition=Ready pod -l app=whoami -n kube-system --timeout=120s')
}, 180_000)

afterAll(async () => {
  if (!isHere) return
  await browser.close()
  await server.stop()
  await rm(directory, { recursive: true, force: true })
})

afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close()
  for (const program of running.splice(0)) await program.stop()
})

/** Starts a local proxy and returns the address of the add-on behind it. */
async function proxyOf(program: string, args: readonly string[]): Promise<string> {
  const proxy = new LoggedProcess(program, args)
  running.push(proxy)
  const line = await proxy.said(/127\.0\.0\.1:\d+|localhost:\d+/)
  const [, port] = /:(\d+)/.exec(line) ?? []
  return `http://localhost:${port}${addonPath}`
}

const kubectlProxy = (kubeconfig: string): Promise<string> =>
  proxyOf(kubectlPath ?? '', ['--kubeconfig', kubeconfig, 'proxy', '-p', '0'])

const ourProxy = (kubeconfig: string): Promise<string> =>
  proxyOf(process.execPath, [
    join(dist, 'cli', 'main.js'),
    'proxy',
    '--kubeconfig',
    kubeconfig,
    '--port',
    '0',
  ])

/** Opens the page as the proposal writes its address, and collects what the browser complains about. */
async function openPage(address: string, scheme: 'light' | 'dark' = 'light') {
  const context = await browser.newContext({
    colorScheme: scheme,
    viewport: { width: scheme === 'dark' ? 420 : 1100, height: 1_400 },
  })
  contexts.push(context)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(`${address}?add-auth=true#/workload`)
  await page.locator('#live.good').waitFor({ timeout: 60_000 })
  return { page, complaints }
}

async function keep(page: Page, name: string): Promise<void> {
  if (screenshots === undefined) return
  mkdirSync(screenshots, { recursive: true })
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true })
}

const nameOn = (page: Page): Promise<string | null> => page.locator('#user').textContent()

async function askForMaps(page: Page): Promise<string> {
  const before = (await page.locator('#maps').textContent()) ?? ''
  await page.locator('#ask button').click()
  await page.locator(`#maps p`).first().waitFor()
  await expect.poll(() => page.locator('#maps').textContent()).not.toBe(before)
  return (await page.locator('#maps').textContent()) ?? ''
}

describe.skipIf(!isHere)('the add-on in a browser', () => {
  beforeEach(() => {
    running.length = 0
  })

  test('stock kubectl proxy: page, requests and WebSocket know the user of the kubeconfig, two at once [ADDON-I1, ADDON-R1, ADDON-R4, ADDON-R8, ADDON-R9]', async () => {
    const [jane, bob] = await Promise.all([
      openPage(await kubectlProxy(userFile('jane'))),
      openPage(await kubectlProxy(userFile('bob')), 'dark'),
    ])
    expect(await nameOn(jane.page)).toBe('jane')
    expect(await nameOn(bob.page)).toBe('bob')
    expect(await jane.page.locator('#live').textContent()).toMatch(/^live as jane/)
    expect(await bob.page.locator('#live').textContent()).toMatch(/^live as bob/)
    expect(await askForMaps(jane.page)).toMatch(/in default, read as jane/)
    expect(await askForMaps(bob.page)).toMatch(/may not: .*"bob" cannot list/)
    expect([...jane.complaints, ...bob.complaints]).toEqual([])
    await keep(jane.page, 'whoami-light')
    await keep(bob.page, 'whoami-dark-narrow')
  })

  test('a long name in another script is shown as it is, over the WebSocket too [ADDON-E1]', async () => {
    const name = 'Жанна, '.repeat(12).trim()
    await createUser(name)
    const { page, complaints } = await openPage(await kubectlProxy(userFile(name)))
    expect(await nameOn(page)).toBe(name)
    expect(await page.locator('#live-state').textContent()).toBe(`live as ${name}`)
    const header = await page.locator('#hops li').nth(3).locator('code').textContent()
    expect(header).toBe(`X-Authenticated-User: ${encodeURIComponent(name)}`)
    expect(complaints).toEqual([])
  })

  test('sallyport proxy with an exec plugin [ADDON-I2]', async () => {
    const file = join(directory, 'jane-exec.kubeconfig')
    const text = await readFile(userFile('jane'), 'utf8')
    const pick = (name: string): string => new RegExp(`${name}: (\\S+)`).exec(text)?.[1] ?? ''
    const decode = (base64: string): string => Buffer.from(base64, 'base64').toString()
    const status = {
      clientCertificateData: decode(pick('client-certificate-data')),
      clientKeyData: decode(pick('client-key-data')),
    }
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status,
    }
    const plugin = join(directory, 'plugin.json')
    await writeFile(plugin, JSON.stringify(credential), { mode: 0o600 })
    const exec = {
      apiVersion: credential.apiVersion,
      command: 'cat',
      args: [plugin],
      interactiveMode: 'Never',
    }
    await writeFile(
      file,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'x',
        contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
        clusters: [
          {
            name: 'x',
            cluster: {
              server: server.server,
              'certificate-authority-data': pick('certificate-authority-data'),
            },
          },
        ],
        users: [{ name: 'x', user: { exec } }],
      }),
      { mode: 0o600 },
    )
    const { page, complaints } = await openPage(await ourProxy(file))
    expect(await nameOn(page)).toBe('jane')
    expect(await page.locator('#live').textContent()).toMatch(/^live as jane/)
    expect(complaints).toEqual([])
  })

  test('it shows the way of the identity and the live token, and every forgery is refused or undone [ADDON-E1, ADDON-E2, ADDON-E4]', async () => {
    const { page } = await openPage(await kubectlProxy(userFile('jane')))
    expect(await page.locator('#hops li').count()).toBe(5)
    const claims = (await page.locator('#claims').textContent()) ?? ''
    expect(claims).toContain('k8s-addon+jwt')
    expect(claims).toContain('kube-system/whoami')
    await expect.poll(() => page.locator('#left').textContent()).toMatch(/^\d+ s to live$/)
    for (const button of await page.locator('#forgeries button').all()) await button.click()
    const outcomes = page.locator('#forgeries .outcome.good')
    await expect.poll(() => outcomes.count(), { timeout: 20_000 }).toBe(9)
    for (const outcome of await outcomes.allTextContents())
      expect(outcome).toMatch(/^(Refused: 401 |Refused: 403 [a-z]|Let in, but as jane )/)
    await keep(page, 'whoami-forgeries')
  })

  test('the page works below any path, loads nothing from elsewhere and has a strict policy [ADDON-E3]', async () => {
    const address = (await kubectlProxy(userFile('jane'))).replace(
      '/api/v1/proxy/namespaces/kube-system/services/whoami/',
      '/api/v1/namespaces/kube-system/services/http:whoami:/proxy/',
    )
    const context = await browser.newContext()
    contexts.push(context)
    const page = await context.newPage()
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    const answer = await page.goto(`${address}?add-auth=true`)
    await page.locator('#live.good').waitFor({ timeout: 60_000 })
    expect(await nameOn(page)).toBe('jane')
    expect(asked.filter((url) => !url.startsWith(address))).toEqual([])
    expect(asked.length).toBeGreaterThan(3)
    const policy = answer?.headers()['content-security-policy'] ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
  })

  test('a user who is revoked loses the open WebSocket and the next request, and the audit log says why [ADDON-I3]', async () => {
    await createUser('mallory')
    const { page } = await openPage(await kubectlProxy(userFile('mallory')))
    expect(await nameOn(page)).toBe('mallory')
    const flags = ['mallory', '--data-dir', server.dataDirectory]
    expect((await runSallyport(['user', 'revoke', ...flags])).code).toBe(0)
    await page.locator('#live.bad').waitFor({ timeout: 30_000 })
    await expect
      .poll(() => page.locator('.hero').textContent(), { timeout: 20_000 })
      .toMatch(/knew you as\s+mallory[^]*The cluster says: Unauthorized/)
    const audit = async () => readFile(join(server.dataDirectory, 'audit.log'), 'utf8')
    await expect
      .poll(
        async () =>
          (await audit())
            .split('\n')
            .filter((line) => line.includes('mallory') && line.includes('revoked')).length,
        { timeout: 20_000 },
      )
      .toBeGreaterThan(0)
  })
})
