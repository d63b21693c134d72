import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { HttpsCaller } from '../support/https-caller.ts'
import { runInProcess } from '../support/in-process-command.ts'
import {
  type InProcessOptions,
  type InProcessServer,
  startInProcess,
} from '../support/in-process-server.ts'
import { run } from '../support/kubectl.ts'

const path = '/api/v1/namespaces/default/configmaps'

let scratch: string
let dataDirectory: string
let running: InProcessServer[] = []
let mounted = false

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-store-'))
  dataDirectory = join(scratch, 'data')
  running = []
})
afterEach(async () => {
  await stop()
  if (mounted) await system('umount', dataDirectory)
  mounted = false
  await rm(scratch, { recursive: true, force: true })
})

async function start(options: InProcessOptions = {}): Promise<HttpsCaller> {
  const server = await startInProcess({ dataDirectory, ...options })
  running.push(server)
  return server.admin()
}

async function stop(): Promise<void> {
  for (const server of running.splice(0)) await server.halt()
}

const create = (admin: HttpsCaller, name: string, data = 'x') =>
  admin.post(path, { metadata: { name }, data: { data } })

/** Runs `sallyport store ...` on a data directory. */
const store = (words: string, directory = dataDirectory) =>
  runInProcess(['store', ...words.split(' '), '--data-dir', directory])

const storeFiles = async (): Promise<string[]> =>
  (await readdir(join(dataDirectory, 'store'))).map((name) => join(dataDirectory, 'store', name))

/** Flips one bit of the byte that is `offset` after the first place of `text` in the store. */
async function flipNear(text: string, offset = 0): Promise<string> {
  for (const file of await storeFiles()) {
    const bytes = await readFile(file)
    const at = bytes.indexOf(text)
    if (at < 0) continue
    bytes[at + offset] = (bytes[at + offset] ?? 0) ^ 1
    await writeFile(file, bytes)
    return file
  }
  throw new Error(`${text} is nowhere in the store`)
}

describe('beside a running server [GND-R28]', () => {
  test('check finds the store sound, and backup copies it, while it is written to', async () => {
    const admin = await start()
    const writing = Promise.all(Array.from({ length: 60 }, (_, i) => create(admin, `busy-${i}`)))
    const checks = await Promise.all([store('check'), store('check'), store('check')])
    const backup = await store(`backup ${join(scratch, 'busy.backup')}`)
    expect(checks.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(checks[0].stdout).toMatch(/is sound: \d+ records at revision \d+/)
    expect(backup).toMatchObject({ code: 0, stderr: '' })
    expect(new Set((await writing).map(({ status }) => status))).toEqual(new Set([201]))
    expect((await stat(join(scratch, 'busy.backup'))).mode & 0o077).toBe(0)
  })

  test('check and backup tell a program what they found', async () => {
    await start()
    const file = join(scratch, 'a.backup')
    const check = await store('check --output json')
    const backup = await store(`backup ${file} --output json`)
    const found: unknown = JSON.parse(check.stdout)
    expect(found).toMatchObject({ ok: true, problems: [] })
    expect(JSON.parse(backup.stdout)).toMatchObject({ file })
  })

  test('a backup overwrites nothing', async () => {
    await start()
    const file = join(scratch, 'precious')
    await writeFile(file, 'precious')
    const { code, stderr } = await store(`backup ${file}`)
    expect(code).toBe(1)
    expect(stderr).toContain('is there already and is not overwritten')
    expect(await readFile(file, 'utf8')).toBe('precious')
  })

  test('a restore into the data directory of a running server is refused', async () => {
    const admin = await start()
    const file = join(scratch, 'a.backup')
    await store(`backup ${file}`)
    const { code, stderr } = await store(`restore ${file}`)
    expect(code).toBe(1)
    expect(stderr).toContain('only restored into an empty directory')
    expect((await create(admin, 'still-works')).status).toBe(201)
  })
})

describe('a restored store [GND-R28]', () => {
  /** A backup of a store with `before`, restored after `after` was written and lost. */
  async function restored(): Promise<{ readonly oldVersion: string; readonly admin: HttpsCaller }> {
    const admin = await start()
    await create(admin, 'before')
    const file = join(scratch, 'a.backup')
    await store(`backup ${file}`)
    const made = await create(admin, 'after')
    await stop()
    const second = join(scratch, 'second')
    const { code } = await store(`restore ${file} --output json`, second)
    if (code !== 0) throw new Error('not restored')
    await cp(join(dataDirectory, 'pki'), join(second, 'pki'), { recursive: true })
    dataDirectory = second
    const oldVersion = String(made.object.metadata.resourceVersion)
    return { oldVersion, admin: await start() }
  }

  test('holds what the backup held', async () => {
    const { admin } = await restored()
    expect((await admin.get(`${path}/before`)).status).toBe(200)
    expect((await admin.get(`${path}/after`)).status).toBe(404)
    expect((await create(admin, 'after')).status).toBe(201)
    expect((await store('check')).code).toBe(0)
  })

  test('answers versions of the lost store with 410', async () => {
    const { admin, oldVersion } = await restored()
    const watch = await admin.watch(`${path}?watch=true&resourceVersion=${oldVersion}`)
    expect(await watch.next()).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired' },
    })
    expect(await watch.ended).toBe(true)
    const exact = `${path}?resourceVersion=${oldVersion}&resourceVersionMatch=Exact`
    expect((await admin.get(exact)).object).toMatchObject({ code: 410, reason: 'Expired' })
  })
})

describe('what is not a backup is not restored [GND-R28]', () => {
  test.each([
    ['no file at all', async () => {}, /cannot be used.*missing/],
    ['garbage', (file: string) => writeFile(file, 'garbage'), /cannot be used/],
    ['a backup that is cut off', (file: string) => shortened(file), /cannot be used/],
  ])('%s', async (_name, make, words) => {
    const file = join(scratch, 'bad.backup')
    await make(file)
    const target = join(scratch, 'target')
    const { code, stderr } = await store(`restore ${file}`, target)
    expect(code).toBe(1)
    expect(stderr).toMatch(words)
    expect(stderr).not.toMatch(/unexpected failure|\n {4}at /)
    expect((await store('check', target)).stderr).toMatch(/there is no store|damaged/)
  })

  async function shortened(file: string): Promise<void> {
    await start()
    await store(`backup ${file}`)
    await stop()
    await writeFile(file, (await readFile(file)).subarray(0, -100))
  }
})

describe('one flipped byte in a live record [GND-R26, GND-R28]', () => {
  async function damaged(): Promise<void> {
    const admin = await start()
    await create(admin, 'good', 'fine')
    await create(admin, 'victim', 'a-value-that-is-to-be-damaged')
    await stop()
    await flipNear('a-value-that-is-to-be-damaged', 5)
  }

  test('is found and named by check, which exits 1', async () => {
    await damaged()
    const text = await store('check')
    expect(text.code).toBe(1)
    expect(text.stdout).toContain('configmaps/default/victim')
    expect(text.stdout).not.toContain('/good')
    const json = await store('check --output json')
    expect(json.code).toBe(1)
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: false,
      problems: [{ key: expect.stringContaining('configmaps/default/victim') }],
      error: { code: 'STORE_DAMAGED' },
    })
  })

  test('is not copied into a backup', async () => {
    await damaged()
    const { code, stderr } = await store(`backup ${join(scratch, 'a.backup')}`)
    expect(code).toBe(1)
    expect(stderr).toContain('configmaps/default/victim')
    expect(await readdir(scratch)).toEqual(['data'])
  })

  test('stops the start until the operator chooses [SEC-R1007]', async () => {
    await damaged()
    await expect(start()).rejects.toThrow(
      /value of core\/configmaps\/default\/victim fails.*repair/,
    )
    const plan = await store('repair')
    expect(plan.stdout).toContain('core/configmaps/default/victim: its value is damaged')
    expect(plan.stdout).toContain('Nothing has been changed')
    await expect(start()).rejects.toThrow(/victim/)
    expect(JSON.parse((await store('repair --yes --output json')).stdout)).toMatchObject({
      repaired: true,
      removed: [{ key: 'core/configmaps/default/victim' }],
    })
    expect((await store('check')).code).toBe(0)
    const admin = await start()
    expect((await admin.get(`${path}/good`)).status).toBe(200)
    expect((await admin.get(`${path}/victim`)).status).toBe(404)
    expect((await create(admin, 'victim', 'made-again')).status).toBe(201)
  })

  test.each([
    'core/configmaps/kube-system/sallyport-revoked',
    'core/secrets/kube-system/bootstrap-token-abcdef',
    'rbac.authorization.k8s.io/clusterroles/cluster-admin',
    'core/namespaces/default',
  ])('of %s does too: no start waits for it or goes on without it [SEC-R1007]', async (key) => {
    const admin = await start()
    const metadata = { namespace: 'kube-system' }
    const systemPath = '/api/v1/namespaces/kube-system'
    await admin.post(`${systemPath}/configmaps`, {
      metadata: { ...metadata, name: 'sallyport-revoked' },
    })
    await admin.post(`${systemPath}/secrets`, {
      metadata: { ...metadata, name: 'bootstrap-token-abcdef' },
      type: 'bootstrap.kubernetes.io/token',
      stringData: { 'token-id': 'abcdef', 'token-secret': '0123456789abcdef' },
    })
    await stop()
    await flipNear(key, key.length + 20)
    await expect(start()).rejects.toThrow(`the value of ${key} fails its checksum`)
    expect((await store('check')).stdout).toContain(`record ${key}:`)
  })
})

describe('structural damage [GND-R26]', () => {
  test('keeps the server from starting, and both it and check say where', async () => {
    const admin = await start()
    await create(admin, 'victim')
    await create(admin, 'later')
    await stop()
    // The key lies under the checksum of the record's header.
    const file = await flipNear('configmaps/default/victim')
    await expect(start()).rejects.toThrow(`the store is damaged: ${file}`)
    const { code, stdout } = await store('check')
    expect(code).toBe(1)
    expect(stdout).toContain(`${file}:`)
  })

  test('a store of something else is left alone', async () => {
    await mkdir(join(dataDirectory, 'store'), { recursive: true })
    await writeFile(join(dataDirectory, 'store', 'precious'), 'precious')
    await expect(start()).rejects.toThrow('is not a Sallyport store')
    expect(await readdir(join(dataDirectory, 'store'))).toEqual(['precious'])
  })
})

describe('a marker that proves nothing', () => {
  const marker = () => join(dataDirectory, 'store', 'synced')

  test.each<[string, () => Promise<void>]>([
    ['missing', () => rm(marker())],
    ['empty', () => writeFile(marker(), '')],
    ['damaged', () => writeFile(marker(), Buffer.alloc(64, 7))],
  ])(
    'and is %s stops the start until the operator chooses [SEC-R1003, SEC-R1005]',
    async (state, change) => {
      const admin = await start()
      await create(admin, 'victim', 'the-last-acknowledged-write')
      await stop()
      await change()
      await flipNear('the-last-acknowledged-write', 5)
      await expect(start()).rejects.toMatchObject({ code: 'STORE_END_UNKNOWN' })
      const check = await store('check')
      expect(check.code).toBe(1)
      expect(check.stdout).toContain(`the file "synced" is ${state}`)
      expect(check.stderr).toContain('sallyport store repair')
      const plan = await store('repair')
      expect(plan.stdout).toContain('Nothing has been changed')
      await expect(start()).rejects.toMatchObject({ code: 'STORE_END_UNKNOWN' })
      expect(JSON.parse((await store('repair --yes --output json')).stdout)).toMatchObject({
        repaired: true,
        end: { why: `the file "synced" is ${state}` },
      })
      expect((await store('check')).code).toBe(0)
      expect((await (await start()).get('/api/v1/namespaces')).status).toBe(200)
      expect((await store('repair')).stderr).toContain('is in use')
    },
  )
})

describe('without a store [GND-R28]', () => {
  test.each(['check', 'backup /nonexistent/file'])('%s says so and exits 1', async (words) => {
    const { code, stderr, stdout } = await store(words)
    expect(code).toBe(1)
    expect(stderr + stdout).toContain('there is no store in')
  })
})

/** Runs a program of the machine; throws unless it ends well. */
async function system(program: string, ...args: string[]): Promise<void> {
  const { code, stderr } = await run(program, args)
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`)
}

/** Why nothing can be mounted here, if so. */
async function whyNoMounts(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root can mount'
  return system('unshare', '--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt').then(
    () => undefined,
    () => 'mounting is not allowed here',
  )
}

const noMounts = await whyNoMounts()
if (noMounts) console.warn(`skipped: tests of full and read-only disks: ${noMounts}`)

describe.skipIf(noMounts !== undefined)('a data directory on a disk [GND-R30]', () => {
  beforeEach(async () => {
    await mkdir(dataDirectory)
    await system('mount', '-t', 'tmpfs', '-o', 'size=3m,mode=700', 'none', dataDirectory)
    mounted = true
  })

  test('that is full: writes are refused in words, reads go on, and nothing is lost', async () => {
    const admin = await start()
    const kept: string[] = []
    let refused = await create(admin, 'first', 'x')
    for (let i = 0; refused.status === 201; i++) {
      refused = await create(admin, `large-${i}`, 'x'.repeat(100_000))
      if (refused.status === 201) kept.push(`large-${i}`)
    }
    expect(refused.object).toMatchObject({ kind: 'Status', status: 'Failure', code: 503 })
    expect(refused.object['message']).toMatch(/could not be stored and was not made.*disk is full/)
    expect(kept.length).toBeGreaterThan(5)
    expect((await admin.get(`${path}/first`)).status).toBe(200)
    expect((await admin.get(path)).status).toBe(200)

    await system('mount', '-o', 'remount,size=20m', dataDirectory)
    expect((await create(admin, 'after')).status).toBe(201)
    await stop()
    const again = await start()
    const items = (await again.get(path)).object['items'] as { metadata: { name: string } }[]
    const names = items.map(({ metadata }) => metadata.name)
    expect(names.sort()).toEqual(['after', 'first', 'kube-root-ca.crt', ...kept].sort())
  })

  test('that is read-only: the start says so and changes nothing', async () => {
    await start()
    await stop()
    await system('mount', '-o', 'remount,ro', dataDirectory)
    await expect(start()).rejects.toMatchObject({
      code: 'DATA_DIR_READ_ONLY',
      message: `${dataDirectory} is not writable`,
    })
  })
})

describe('a data directory that others have a hand in [GND-R30, SEC-R1706]', () => {
  const foreign = 54_321
  const at = (name: string): string => join(dataDirectory, name)
  const cases: [string, string, () => Promise<void>][] = [
    ['it is open to everybody', '', () => chmod(dataDirectory, 0o777)],
    ['its group can write to it', '', () => chmod(dataDirectory, 0o770)],
    ['its parent is open to everybody', '..', () => chmod(scratch, 0o777)],
    ['pki is open to everybody', 'pki', () => chmod(at('pki'), 0o777)],
    ['store is open to everybody', 'store', () => chmod(at('store'), 0o733)],
    ['the CA key is readable for others', 'pki/ca.key', () => chmod(at('pki/ca.key'), 0o644)],
    ['the CA key is readable for a group', 'pki/ca.key', () => chmod(at('pki/ca.key'), 0o640)],
    ['the CA is writable for others', 'pki/ca.crt', () => chmod(at('pki/ca.crt'), 0o666)],
    ['the store key is readable', 'pki/store-key', () => chmod(at('pki/store-key'), 0o604)],
    [
      'the journal is writable',
      'store/segment-0000000001.log',
      () => chmod(at('store/segment-0000000001.log'), 0o622),
    ],
    ['the kubeconfig is readable', 'admin.kubeconfig', () => chmod(at('admin.kubeconfig'), 0o644)],
    [
      'the kubeconfig is readable for a group',
      'admin.kubeconfig',
      () => chmod(at('admin.kubeconfig'), 0o640),
    ],
    ['the kubeconfig is writable', 'admin.kubeconfig', () => chmod(at('admin.kubeconfig'), 0o666)],
  ]
  const ofOthers = [
    '',
    'pki',
    'store',
    'pki/ca.key',
    'pki/ca.crt',
    'pki/sa.key',
    'pki/store-key',
    'store/MANIFEST',
    'store/synced',
    'admin.kubeconfig',
    'format-version',
    'audit.log',
  ]

  test.each(cases)('is refused: %s', async (_name, path, change) => {
    await start()
    await stop()
    await change()
    const attempt = start()
    await expect(attempt).rejects.toMatchObject({
      code: 'FILE_UNTRUSTED',
      hint: expect.stringContaining('chmod'),
    })
    await expect(attempt).rejects.toThrow(`${join(dataDirectory, path)} cannot be trusted`)
  })

  test.runIf(process.getuid?.() === 0).each(ofOthers)(
    'is refused: another user owns %j',
    async (path) => {
      await start()
      await stop()
      await chown(at(path), foreign, 0)
      const attempt = start()
      await expect(attempt).rejects.toMatchObject({
        code: 'FILE_UNTRUSTED',
        hint: expect.stringContaining('chown'),
      })
      await expect(attempt).rejects.toThrow(`belongs to another user (uid ${foreign}`)
    },
  )

  test('is made for its owner only, whatever the umask [SEC-R1705]', async () => {
    const before = process.umask(0)
    try {
      await start()
      await stop()
    } finally {
      process.umask(before)
    }
    const modeOf = async (path: string) => (await stat(path)).mode & 0o777
    for (const path of ['', 'pki', 'store'])
      expect([path, await modeOf(at(path))]).toEqual([path, 0o700])
    for (const name of ['format-version', 'admin.kubeconfig', 'audit.log']) {
      expect([name, await modeOf(at(name))]).toEqual([name, 0o600])
    }
    for (const file of await storeFiles()) expect([file, await modeOf(file)]).toEqual([file, 0o600])
    for (const name of await readdir(at('pki'))) {
      const isPublic = /\.(?:crt|pub)$/.test(name)
      expect([name, await modeOf(at(`pki/${name}`))]).toEqual([name, isPublic ? 0o644 : 0o600])
    }
  })
})
