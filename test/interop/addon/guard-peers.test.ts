import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type GuardLab,
  LabAddon,
  type RawAnswer,
  sendRaw,
  startGuardLab,
} from '../../../src/addon/guard/guard-lab.suite.ts'
import { freePort } from '../../../src/cli/up/addon-process.ts'
import { renderJwks, signCompactJws, signingKey } from '../../../src/jose/index.ts'
import { eventually } from '../../support/eventually.ts'
import { type InProcessServer, startInProcess } from '../../support/in-process-server.ts'
import { LoggedProcess } from '../../support/logged-process.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'

/** A proxy that knows users, with an application behind it. */
interface Contestant {
  readonly port: number
  readonly addon: LabAddon
  /** Under which the application is told the user. */
  readonly header: string
  readonly token: (user: string) => string
  /** A token of bob whose claims differ, or the text of them; absent where tokens are somebody else's to read. */
  readonly forge?: (
    change: Readonly<Record<string, unknown>>,
    edit?: (claims: string) => string,
  ) => string
  readonly stop: () => Promise<void>
}

const users = ['bob', 'bob, root', '山田'] as const

async function guard(): Promise<Contestant> {
  const lab: GuardLab = await startGuardLab()
  const { port, addon } = lab
  const token = (sub: string): string => lab.token({ claims: { sub } })
  const forge: Contestant['forge'] = (claims, edit) => {
    const made = lab.token({ claims })
    if (!edit) return made
    const json = Buffer.from(made.split('.')[1] ?? '', 'base64url').toString()
    return lab.token({ payload: edit(json) })
  }
  return { port, addon, header: 'X-Authenticated-User', token, forge, stop: () => lab.stop() }
}

async function listening(port: number): Promise<void> {
  await eventually('it listens', () =>
    sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n').then(
      () => true,
      () => false,
    ),
  )
}

async function kubeRbacProxy(path: string): Promise<Contestant> {
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-rbac-proxy-'))
  const rows = users.map((user, index) => `token-${index},"${user}",${index},"system:masters"`)
  const file = join(directory, 'tokens.csv')
  await writeFile(file, rows.join('\n'))
  const server: InProcessServer = await startInProcess({ flags: ['--token-auth-file', file] })
  const addon = new LabAddon()
  await addon.start()
  const port = await freePort()
  const program = new LoggedProcess(path, [
    `--insecure-listen-address=127.0.0.1:${port}`,
    `--upstream=http://127.0.0.1:${addon.port}/`,
    `--kubeconfig=${server.serving.adminKubeconfig}`,
    '--auth-header-fields-enabled=true',
  ])
  await listening(port)
  return {
    port,
    addon,
    header: 'X-Remote-User',
    token: (user) => `token-${users.findIndex((each) => each === user)}`,
    stop: async () => {
      await program.stop()
      await addon.stop()
      await server.close()
      await rm(directory, { recursive: true })
    },
  }
}

async function oauth2Proxy(path: string): Promise<Contestant> {
  const key = signingKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
  const keys: Server = createServer((_q, response) => response.end(renderJwks([key.publicKey])))
  keys.listen(0, '127.0.0.1')
  await once(keys, 'listening')
  const issuer = `http://127.0.0.1:${(keys.address() as AddressInfo).port}`
  const addon = new LabAddon()
  await addon.start()
  const port = await freePort()
  const program = new LoggedProcess(path, [
    `--http-address=127.0.0.1:${port}`,
    `--upstream=http://127.0.0.1:${addon.port}/`,
    '--provider=oidc',
    `--oidc-issuer-url=${issuer}`,
    '--skip-oidc-discovery=true',
    '--oidc-enabled-signing-alg=ES256',
    `--oidc-jwks-url=${issuer}/keys`,
    `--login-url=${issuer}/login`,
    `--redeem-url=${issuer}/redeem`,
    '--client-id=lab',
    '--client-secret=lab-lab-lab-lab',
    '--cookie-secret=0123456789abcdef',
    '--email-domain=*',
    '--skip-jwt-bearer-tokens=true',
  ])
  await listening(port)
  const forge: Contestant['forge'] = (change, edit = (claims) => claims) => {
    const iat = Math.floor(Date.now() / 1000)
    const times = { iat, exp: iat + 600, email_verified: true }
    const bob = { iss: issuer, aud: 'lab', sub: 'bob', email: 'bob@example.com', ...times }
    return signCompactJws({ kid: key.kid }, edit(JSON.stringify({ ...bob, ...change })), key)
  }
  return {
    port,
    addon,
    header: 'X-Forwarded-User',
    token: (sub) => forge({ sub }),
    forge,
    stop: async () => {
      await program.stop()
      await addon.stop()
      keys.close()
    },
  }
}

type Attack = (contestant: Contestant) => Promise<boolean>

const ask = (
  { port, token, addon }: Contestant,
  lines: readonly string[],
  { user = 'bob', as = token(user) } = {},
): Promise<RawAnswer> => {
  addon.seen.length = 0
  const auth = `Authorization: Bearer ${as}`
  return sendRaw(port, ['GET / HTTP/1.1', 'Host: a', auth, ...lines, '', ''].join('\r\n'))
}

/** Whether none of these tokens leads to the application. */
async function refusesAll(to: Contestant, tokens: readonly string[]): Promise<boolean> {
  for (const as of tokens) {
    const { status } = await ask(to, [], { as })
    if (status < 400 && to.addon.seen.length > 0) return false
  }
  return true
}

const padded = (token: string): string => token.replace(/\.([^.]*)\./, '.$1=.')

/** Half a request, and whether its connection is closed before anybody would call it slow. */
function cutsSlowHeaders({ port }: Contestant): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n'))
    const end = (isCut: boolean): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(isCut)
    }
    const timer = setTimeout(() => end(false), patienceMs)
    socket.on('error', () => {}).on('close', () => end(true))
    socket.resume()
  })
}

const patienceMs = 20_000

/** The application is told the user, once, and nothing else under that name in any spelling. */
const toldOnly = ({ addon, header }: Contestant, user: string): boolean => {
  const values = addon.values(header.toLowerCase())
  return values.length === 1 && values[0] === user
}

/** The attack inputs of the page, each as the question whether a proxy holds. */
const attacks: Readonly<Record<string, Attack>> = {
  T3: async (to) => {
    for (const spelt of [to.header.replaceAll('-', '_'), to.header.replaceAll('-', '.')]) {
      await ask(to, [`${spelt}: root`])
      if (!toldOnly(to, 'bob')) return false
    }
    return true
  },
  T5: async (to) => {
    await ask(to, [`Connection: close, ${to.header}`])
    return toldOnly(to, 'bob')
  },
  T7: async (to) => {
    await ask(to, ['Connection: ', `Connection: ${to.header}`])
    return toldOnly(to, 'bob')
  },
  T8: async (to) => {
    const { status } = await ask(to, ['Authorization: Bearer other'])
    return status >= 400 && to.addon.seen.length === 0
  },
  T13: async (to) => {
    const names = ['X-Forwarded-User', 'X-Remote-User', 'Remote-User', 'Cf-Access-Jwt-Assertion']
    await ask(
      to,
      names.map((name) => `${name}: root`),
    )
    return toldOnly(to, 'bob') && !JSON.stringify(to.addon.seen).includes('root')
  },
  T14: async (to) => {
    await ask(to, [], { user: '山田' })
    // Either nothing reaches the application, or only what every reader takes alike.
    return to.addon.values(to.header.toLowerCase()).every((value) => /^[\x21-\x7e]+$/.test(value))
  },
  T15: async (to) => {
    await ask(to, [], { user: 'bob, root' })
    return to.addon.values(to.header.toLowerCase()).every((value) => !value.includes(','))
  },
  T25: async (to) => {
    const twice = to.forge?.({}, (claims) => claims.replace('"sub":"bob"', '$&,"sub":"root"'))
    return twice === undefined || refusesAll(to, [twice])
  },
  T26: async (to) => {
    const { forge } = to
    if (!forge) return true
    return refusesAll(to, [padded(forge({})), forge({}, (claims) => `${claims}x`)])
  },
  T27: async (to) => {
    const iat = Math.floor(Date.now() / 1000)
    const forged = [{ iat: iat + 3_600, exp: iat + 3_660 }, { exp: iat + 31_536_000 }]
    const { forge } = to
    return (
      !forge ||
      refusesAll(
        to,
        forged.map((claims) => forge(claims)),
      )
    )
  },
  T36: cutsSlowHeaders,
  T44: async (to) => {
    const h2c = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']
    return !(await isTunnelled(to, h2c))
  },
  T45: async (to) => !(await isTunnelled(to, ['Connection: Upgrade', 'Upgrade: foo'])),
}

/** Whether the application is asked for another protocol, and its agreement passed on. */
async function isTunnelled(to: Contestant, lines: readonly string[]): Promise<boolean> {
  let isAsked = false
  to.addon.onUpgrade = ({ headers }, socket) => {
    isAsked = true
    const protocol = headers.upgrade ?? ''
    socket.end(`HTTP/1.1 101 Switching\r\nUpgrade: ${protocol}\r\nConnection: Upgrade\r\n\r\n`)
  }
  const { status } = await ask(to, lines)
  return isAsked && status === 101
}

/** What the page says: which of its numbers a column says to fail. */
async function failingBy(column: number): Promise<string[]> {
  const page = await readFile(new URL('../../../docs/features/guard.md', import.meta.url), 'utf8')
  const table = page.slice(page.indexOf('| | guard | kube-rbac-proxy'))
  const cells = table.split('\n').map((row) => row.split('|')[column + 1] ?? '')
  const failing = cells.filter((cell) => cell.includes('fail'))
  return failing.flatMap((cell) => cell.match(/T\d+/g) ?? []).sort()
}

const rbacProxy = pathOrReason(findPeer('kube-rbac-proxy-0.19'))
const oauthProxy = pathOrReason(findPeer('oauth2-proxy-7.15'))

describe.each<[string, number, (() => Promise<Contestant>) | undefined]>([
  ['the guard', 1, guard],
  [
    'kube-rbac-proxy 0.19.1',
    2,
    rbacProxy === undefined ? undefined : () => kubeRbacProxy(rbacProxy),
  ],
  ['oauth2-proxy 7.15.3', 3, oauthProxy === undefined ? undefined : () => oauth2Proxy(oauthProxy)],
])('%s', (_name, column, start) => {
  let contestant: Contestant
  beforeAll(async () => {
    if (start) contestant = await start()
  })
  afterAll(async () => {
    if (start) await contestant.stop()
  })

  test.skipIf(start === undefined)(
    'fails what the page says that it fails, and nothing else',
    async () => {
      expect((await ask(contestant, [])).status).toBe(200)
      expect(toldOnly(contestant, 'bob')).toBe(true)
      const failed: string[] = []
      for (const [number, holds] of Object.entries(attacks))
        if (!(await holds(contestant))) failed.push(number)
      expect(failed.sort()).toEqual(await failingBy(column))
    },
  )
})
