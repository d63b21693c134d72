import {
  chmod,
  chown,
  lchown,
  mkdir,
  mkdtemp,
  open,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { umask } from 'node:process'
import { beforeEach, describe, expect, test } from 'vitest'
import { replaceFile } from './files.ts'
import {
  makePrivateDirectory,
  ownUserId,
  readGivenFile,
  readTrustedFile,
  readTrustedFileIfPresent,
  requireTrustedDirectory,
} from './trusted-files.ts'

const other = 54_321
const ordinary = 12_345
/** Only root can make files of other users; the tests that need some are skipped for others. */
const isRoot = ownUserId() === 0

let top: string
beforeEach(async () => {
  top = await realpath(await mkdtemp(join(tmpdir(), 'sallyport-trust-')))
  return () => rm(top, { recursive: true, force: true })
})

const outcome = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'trusted',
    (error: { code?: string; message?: string }) =>
      error.code === 'FILE_UNTRUSTED' ? 'refused' : String(error.message),
  )

const owners = { root: 0, 'the user': ordinary, 'another user': other } as const
const directoryModes = [
  0o700, 0o750, 0o755, 0o711, 0o770, 0o775, 0o777, 0o707, 0o702, 0o1777, 0o1770, 0o2775,
]
const fileModes = [
  0o600, 0o400, 0o640, 0o440, 0o604, 0o644, 0o444, 0o660, 0o620, 0o602, 0o606, 0o666, 0o777, 0o4600,
]
const writable = (mode: number): boolean => (mode & 0o022) !== 0

const users = [
  ['root', 0],
  ['an ordinary user', ordinary],
] as const

describe.each(users)('for %s', (_, userId) => {
  const isAllowedOwner = (owner: number): boolean => owner === 0 || owner === userId

  test.runIf(isRoot)(
    'a directory is refused unless only the user or root can write to it [SEC-R1701]',
    async () => {
      for (const [who, owner] of Object.entries(owners)) {
        for (const mode of directoryModes) {
          const path = join(top, 'data')
          await mkdir(path)
          await chmod(path, mode)
          await chown(path, owner, 0)
          await chmod(path, mode)
          const expected = isAllowedOwner(owner) && !writable(mode) ? 'trusted' : 'refused'
          const found = await outcome(requireTrustedDirectory({ path }, { userId }))
          expect([who, mode.toString(8), found]).toEqual([who, mode.toString(8), expected])
          await rm(path, { recursive: true })
        }
      }
    },
  )

  test.runIf(isRoot)('so is each directory above it, unless it is sticky [SEC-R1701]', async () => {
    for (const [who, owner] of Object.entries(owners)) {
      for (const mode of directoryModes) {
        const above = join(top, 'above')
        const path = join(above, 'between', 'data')
        await mkdir(path, { recursive: true, mode: 0o700 })
        await chown(above, owner, 0)
        await chmod(above, mode)
        const isSafe = !writable(mode) || (mode & 0o1000) !== 0
        const expected = isAllowedOwner(owner) && isSafe ? 'trusted' : 'refused'
        const found = await outcome(requireTrustedDirectory({ path }, { userId }))
        expect([who, mode.toString(8), found]).toEqual([who, mode.toString(8), expected])
        await rm(above, { recursive: true })
      }
    }
  })

  test.runIf(isRoot)(
    'a key file of ours is refused unless nobody else can read or write it [SEC-R1702]',
    async () => {
      for (const [who, owner] of Object.entries(owners)) {
        for (const mode of fileModes) {
          const path = join(top, 'ca.key')
          await writeFile(path, 'key')
          await chown(path, owner, 0)
          await chmod(path, mode)
          const expected = isAllowedOwner(owner) && (mode & 0o077) === 0 ? 'trusted' : 'refused'
          const found = await outcome(readTrustedFile(path, 'private', { userId }))
          expect([who, mode.toString(8), found]).toEqual([who, mode.toString(8), expected])
          await rm(path)
        }
      }
    },
  )

  test.runIf(isRoot)(
    'a file named by a flag is refused if another user owns it or can write it [SEC-R1703]',
    async () => {
      for (const [who, owner] of Object.entries(owners)) {
        for (const mode of fileModes) {
          const path = join(top, 'tls.key')
          await writeFile(path, 'key')
          await chown(path, owner, 0)
          await chmod(path, mode)
          const expected = isAllowedOwner(owner) && !writable(mode) ? 'trusted' : 'refused'
          const found = await outcome(readTrustedFile(path, 'given', { userId }))
          expect([who, mode.toString(8), found]).toEqual([who, mode.toString(8), expected])
          await rm(path)
        }
      }
    },
  )

  test.runIf(isRoot)(
    'an entry of a directory is refused if another user owns it, its target or can write it [SEC-R1701]',
    async () => {
      for (const [who, owner] of Object.entries(owners)) {
        for (const kind of ['file', 'directory', 'link', 'target'] as const) {
          const directory = join(top, 'data')
          const entry = join(directory, 'entry')
          const target = join(top, 'target')
          await mkdir(directory, { mode: 0o700 })
          await writeFile(target, '', { mode: 0o600 })
          if (kind === 'file') await writeFile(entry, '', { mode: 0o600 })
          else if (kind === 'directory') await mkdir(entry, { mode: 0o700 })
          else await symlink(target, entry)
          if (kind === 'target') await chown(target, owner, 0)
          else await lchown(entry, owner, 0)
          const expected = isAllowedOwner(owner) ? 'trusted' : 'refused'
          const found = await outcome(requireTrustedDirectory({ path: directory }, { userId }))
          expect([who, kind, found]).toEqual([who, kind, expected])
          await chmod(kind === 'link' ? target : entry, 0o666)
          expect([
            who,
            kind,
            await outcome(requireTrustedDirectory({ path: directory }, { userId })),
          ]).toEqual([who, kind, 'refused'])
          await rm(directory, { recursive: true })
          await rm(target)
        }
      }
    },
  )
})

describe('a link', () => {
  test('of our own to a place that others can write to is refused for keys of ours [SEC-R1702]', async () => {
    const open = join(top, 'open')
    await mkdir(open)
    await writeFile(join(open, 'ca.key'), 'key', { mode: 0o600 })
    await mkdir(join(top, 'pki'), { mode: 0o700 })
    await symlink(join(open, 'ca.key'), join(top, 'pki', 'ca.key'))
    const path = join(top, 'pki', 'ca.key')
    expect(await readTrustedFile(path, 'private')).toBe('key')
    await chmod(open, 0o777)
    expect(await outcome(readTrustedFile(path, 'private'))).toBe('refused')
  })

  test.runIf(isRoot)('of another user is refused, whatever it leads to [SEC-R1703]', async () => {
    await writeFile(join(top, 'tls.key'), 'key', { mode: 0o600 })
    await symlink('tls.key', join(top, 'link'))
    expect(await outcome(readTrustedFile(join(top, 'link'), 'given'))).toBe('trusted')
    await lchown(join(top, 'link'), other, 0)
    expect(await outcome(readTrustedFile(join(top, 'link'), 'given'))).toBe('refused')
  })

  test('to a directory is followed once: the path that is returned has none [SEC-R1701]', async () => {
    await mkdir(join(top, 'real'), { mode: 0o700 })
    await symlink('real', join(top, 'data'))
    expect(await requireTrustedDirectory({ path: join(top, 'data') })).toBe(join(top, 'real'))
  })

  test('as Kubernetes makes them in a Secret volume is followed [SEC-R1703]', async () => {
    const volume = join(top, 'volume')
    await mkdir(join(volume, '..2026_11_17'), { recursive: true })
    await writeFile(join(volume, '..2026_11_17', 'tls.key'), 'key', { mode: 0o644 })
    await symlink('..2026_11_17', join(volume, '..data'))
    await symlink(join('..data', 'tls.key'), join(volume, 'tls.key'))
    await chmod(volume, 0o1777)
    expect(await readTrustedFile(join(volume, 'tls.key'), 'given')).toBe('key')
  })
})

test('a refusal says what, why and the command that fixes it [SEC-R1704]', async () => {
  await chmod(top, 0o777)
  await expect(requireTrustedDirectory({ path: top })).rejects.toMatchObject({
    code: 'FILE_UNTRUSTED',
    message: `${top} cannot be trusted: other users can write it (mode 0777)`,
    hint: `check its content, then: chmod go-w ${top}`,
  })
  await chmod(top, 0o700)
  const key = join(top, 'ca.key')
  await writeFile(key, 'key', { mode: 0o644 })
  await expect(readTrustedFile(key, 'private')).rejects.toMatchObject({
    message: `${key} cannot be trusted: other users can read it (mode 0644)`,
    hint: `consider the key in it as known to others, then: chmod go= ${key}`,
  })
})

describe.runIf(isRoot)(
  'one refusal names everything, each with its fix [SEC-R1704, SEC-R1708]',
  () => {
    const whose = `it belongs to another user (uid ${other}, this process runs as uid 0)`
    let above: string
    let path: string
    let pki: string
    beforeEach(async () => {
      above = join(top, 'above')
      path = join(above, 'data')
      pki = join(path, 'pki')
      await mkdir(pki, { recursive: true })
    })
    const attempt = () =>
      requireTrustedDirectory(
        { path, parts: ['pki', 'missing'], isSecret: (file) => file.endsWith('.kubeconfig') },
        { userId: 0 },
      )

    test('all directories', async () => {
      await chmod(top, 0o777)
      await chmod(above, 0o777)
      await chown(path, other, 0)
      await chown(pki, other, 0)
      await expect(attempt()).rejects.toMatchObject({
        message: [
          'several files or directories cannot be trusted:',
          `${top}: other users can write it (mode 0777)`,
          `${above}: other users can write it (mode 0777)`,
          `${path}: ${whose}`,
          `${pki}: ${whose}`,
        ].join('\n  - '),
        hint: [
          'for each of them:',
          `check its content, then: chmod go-w ${top}`,
          `check its content, then: chmod go-w ${above}`,
          `check who made it, then: chown -h 0 ${path}`,
          `check who made it, then: chown -h 0 ${pki}`,
        ].join('\n  - '),
      })
    })

    test('all entries, whose names other users may have chosen', async () => {
      const odd = join(path, "a 'b; c")
      await writeFile(odd, '')
      await chown(odd, other, 0)
      await writeFile(join(path, 'admin.kubeconfig'), '')
      await chmod(join(path, 'admin.kubeconfig'), 0o644)
      await symlink('/nowhere', join(path, 'link'))
      await lchown(join(path, 'link'), other, 0)
      await expect(attempt()).rejects.toMatchObject({
        message: [
          'several files or directories cannot be trusted:',
          `${odd}: ${whose}`,
          `${path}/admin.kubeconfig: other users can read it (mode 0644)`,
          `${path}/link: ${whose}`,
        ].join('\n  - '),
        hint: [
          'for each of them:',
          `check who made it, then: chown -h 0 '${path}/a '\\''b; c'`,
          `consider the key in it as known to others, then: chmod go= ${path}/admin.kubeconfig`,
          `check who made it, then: chown -h 0 ${path}/link`,
        ].join('\n  - '),
      })
    })
  },
)

test('a refusal lists 20 problems and counts the rest [SEC-R1708]', async () => {
  for (let i = 0; i < 25; i++) {
    await writeFile(join(top, `f${i}`), '')
    await chmod(join(top, `f${i}`), 0o666)
  }
  const error: unknown = await requireTrustedDirectory({ path: top }).catch((err: unknown) => err)
  const { message } = error as Error
  expect(message.split('\n')).toHaveLength(22)
  expect(message).toMatch(/\n {2}- and 5 more$/)
})

describe.runIf(isRoot)('what belongs to another user outside the data directory', () => {
  const hintOf = async (attempt: Promise<unknown>): Promise<string> => {
    const error = (await attempt.catch((err: unknown) => err)) as { code: string; hint: string }
    expect(error.code).toBe('FILE_UNTRUSTED')
    return error.hint
  }
  let home: string
  let path: string
  beforeEach(async () => {
    home = join(top, 'home')
    path = join(home, 'data')
    await mkdir(path, { recursive: true })
  })

  test('is never to be changed: a directory above, behind a link, of a key [SEC-R1709]', async () => {
    await chown(home, other, 0)
    const expected = `run as the user that owns ${home}, or choose a directory elsewhere`
    expect(await hintOf(requireTrustedDirectory({ path }, { userId: 0 }))).toBe(expected)
    await chown(path, other, 0)
    expect(await hintOf(requireTrustedDirectory({ path }, { userId: 0 }))).not.toContain('chown')
    await chown(path, 0, 0)
    const data = join(top, 'data')
    await mkdir(data)
    await symlink(path, join(data, 'pki'))
    const linked = requireTrustedDirectory({ path: data, parts: ['pki'] }, { userId: 0 })
    expect(await hintOf(linked)).toBe(expected)
    await writeFile(join(path, 'ca.key'), 'key', { mode: 0o600 })
    expect(await hintOf(readTrustedFile(join(path, 'ca.key'), 'private', { userId: 0 }))).toBe(
      expected,
    )
  })

  test('is never to be changed: a file named by a flag, or the target of a link [SEC-R1709]', async () => {
    const file = join(home, 'conf.yaml')
    await writeFile(file, '')
    await chown(file, other, 0)
    expect(await hintOf(readTrustedFile(file, 'given', { userId: 0 }))).toBe(
      `run as the user that owns ${file}, or use a copy of your own`,
    )
    await symlink(file, join(path, 'entry'))
    expect(await hintOf(requireTrustedDirectory({ path }, { userId: 0 }))).not.toContain('chown')
  })
})

describe.runIf(isRoot)('write permission of a group [SEC-R1710]', () => {
  const group = 23_456
  const passwd = (...more: string[]): string =>
    ['root:x:0:0::/root:/bin/sh', `alice:x:${ordinary}:${group}::/:/bin/sh`, ...more, ''].join('\n')
  const alone = passwd()
  const groups = (members: string, ...more: string[]): string =>
    ['root:x:0:', `alice:x:${group}:${members}`, ...more, ''].join('\n')
  const none = groups('')

  const cases: [string, 'trusted' | 'refused', string, string][] = [
    ['no member is listed', 'trusted', alone, none],
    ['the user is listed', 'trusted', alone, groups('alice')],
    ['root is listed', 'trusted', alone, groups('root,alice')],
    ['another group has members', 'trusted', passwd('bob:x:7:7::/:'), groups('', 'b:x:7:bob')],
    ['a second name of the user', 'trusted', passwd(`al:x:${ordinary}:${group}::/:`), groups('al')],
    ['comments and empty lines', 'trusted', `# x\n\n${alone}`, `\n${none}`],
    ['another member is listed', 'refused', passwd('bob:x:7:7::/:'), groups('bob')],
    ['an unknown member is listed', 'refused', alone, groups('alice,bob')],
    ['a member with spaces', 'refused', passwd('bob:x:7:7::/:'), groups(' bob ')],
    ['another user has it as primary group', 'refused', passwd(`bob:x:7:${group}::/:`), none],
    ['the same with zeros', 'refused', passwd(`bob:x:7:0${group}::/:`), none],
    ['a second line of the group', 'refused', alone, groups('', `also:x:${group}:bob`)],
    ['a name with two users', 'refused', passwd(`alice:x:7:7::/:`), groups('alice')],
    ['another primary group', 'refused', `alice:x:${ordinary}:7::/:\n`, groups('alice', 'b:x:7:')],
    ['the user is not in passwd', 'refused', 'root:x:0:0::/root:\n', none],
    ['the group is not in group', 'refused', alone, 'root:x:0:\n'],
    ['empty files', 'refused', '', ''],
    ['users of NIS', 'refused', passwd('+::::::'), none],
    ['groups of NIS', 'refused', alone, groups('', '+:::')],
  ]
  const attempts = (accounts: string, groupFile: string | undefined) => {
    const readAccounts = (path: string): Promise<string> => {
      if (path === '/etc/passwd') return Promise.resolve(accounts)
      return groupFile === undefined ? Promise.reject(new Error('no')) : Promise.resolve(groupFile)
    }
    return { userId: ordinary, readAccounts }
  }
  let path: string
  let file: string
  beforeEach(async () => {
    path = join(top, 'above', 'data')
    file = join(path, 'file')
    await mkdir(path, { recursive: true })
    await writeFile(file, '')
    for (const each of [top, join(top, 'above'), path, file]) {
      await chown(each, ordinary, group)
      await chmod(each, each === file ? 0o664 : 0o775)
    }
  })

  test.each(cases)('%s: %s', async (_, expected, accounts, groupFile) => {
    const user = attempts(accounts, groupFile)
    expect(await outcome(requireTrustedDirectory({ path }, user))).toBe(expected)
    expect(await outcome(readTrustedFile(file, 'given', user))).toBe(expected)
  })

  test('is refused if the account files cannot be read', async () => {
    expect(await outcome(requireTrustedDirectory({ path }, attempts(alone, undefined)))).toBe(
      'refused',
    )
  })

  test('is refused in any other group, and with write permission for all', async () => {
    const user = attempts(alone, none)
    for (const [at, gid, mode] of [
      [path, group + 1, 0o775],
      [path, 0, 0o775],
      [path, group, 0o777],
      [file, group + 1, 0o664],
      [file, group, 0o666],
      [join(top, 'above'), group + 1, 0o775],
    ] as const) {
      const before = await stat(at)
      await chown(at, ordinary, gid)
      await chmod(at, mode)
      expect([at, await outcome(requireTrustedDirectory({ path }, user))]).toEqual([at, 'refused'])
      await chown(at, ordinary, group)
      await chmod(at, before.mode)
    }
    expect(await outcome(requireTrustedDirectory({ path }, user))).toBe('trusted')
  })

  test('does not make keys readable for the group', async () => {
    const user = attempts(alone, none)
    for (const mode of [0o660, 0o640, 0o620]) {
      await chmod(file, mode)
      expect(await outcome(readTrustedFile(file, 'private', user))).toBe('refused')
      expect(await outcome(requireTrustedDirectory({ path, isSecret: () => true }, user))).toBe(
        'refused',
      )
    }
    await chmod(file, 0o600)
    expect(await outcome(readTrustedFile(file, 'private', user))).toBe('trusted')
  })

  test('is refused for root and for group 0, which users without an account have in containers', async () => {
    for (const each of [top, join(top, 'above'), path, file]) {
      await chown(each, 0, 0)
      await chmod(each, each === file ? 0o664 : 0o775)
    }
    const accounts = `root:x:0:0::/root:\nalice:x:${ordinary}:0::/:\n`
    for (const userId of [0, ordinary]) {
      const user = { ...attempts(accounts, 'root:x:0:\n'), userId }
      expect(await outcome(requireTrustedDirectory({ path }, user))).toBe('refused')
    }
    const user = { ...attempts('root:x:0:0::/root:\n', 'root:x:0:\n'), userId: 0 }
    expect(await outcome(requireTrustedDirectory({ path }, user))).toBe('refused')
  })
})

test.runIf(platform() === 'linux')(
  'a descriptor without a path, as that of a pipe, can be named by a flag [SEC-R1703]',
  async () => {
    const path = join(top, 'nameless')
    await writeFile(path, 'text', { mode: 0o600 })
    const file = await open(path)
    await rm(path)
    expect(await readTrustedFile(`/proc/self/fd/${file.fd}`, 'given')).toBe('text')
    await file.close()
  },
)

test('what is not there is reported as the system does', async () => {
  const path = join(top, 'none')
  await expect(readTrustedFile(path, 'given')).rejects.toMatchObject({ code: 'ENOENT' })
  expect(await readTrustedFileIfPresent(path, 'private')).toBeUndefined()
  await expect(readGivenFile(path, (code) => new Error(`why: ${code}`))).rejects.toThrow(
    'why: ENOENT',
  )
})

test.each([0, 0o022, 0o077, 0o027, 0o777])(
  'with umask %o directories are made 0700 and files as asked [SEC-R1705]',
  async (mask) => {
    const before = umask(mask)
    try {
      await makePrivateDirectory(join(top, 'data'))
      umask(before)
      await replaceFile(join(top, 'data', 'a'), 'a', 0o600)
      umask(mask)
      await replaceFile(join(top, 'data', 'b'), 'b', 0o600)
      await replaceFile(join(top, 'data', 'c'), 'c', 0o600, 'new')
      await expect(
        replaceFile(join(top, 'data', 'c'), 'not written', 0o600, 'new'),
      ).rejects.toMatchObject({ code: 'EEXIST' })
    } finally {
      umask(before)
    }
    const modeOf = async (path: string) => (await stat(path)).mode & 0o777
    expect(await modeOf(join(top, 'data'))).toBe(0o700)
    for (const name of ['a', 'b', 'c']) expect(await modeOf(join(top, 'data', name))).toBe(0o600)
    expect(await readFile(join(top, 'data', 'c'), 'utf8')).toBe('c')
  },
)
