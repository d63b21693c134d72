import { describe, expect, test } from 'vitest'
import { type Logger, silentLogger } from '../core/index.ts'
import { openTokenFile, parseCsv } from './token-file.ts'

describe('CSV', () => {
  test.each([
    ['a,b,c', [['a', 'b', 'c']]],
    [
      'a,b\nc,d\n',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    ['a\r\nb\r\n', [['a'], ['b']]],
    ['\n\na\n\n', [['a']]],
    ['"a,b","c""d","e\nf"', [['a,b', 'c"d', 'e\nf']]],
    [' a , b ', [[' a ', ' b ']]],
    [',', [['', '']]],
    ['#a', [['#a']]],
    ['', []],
  ])('%j is read as Go reads it', (text, expected) => {
    expect(parseCsv(text).map((record) => record.fields)).toEqual(expected)
  })

  test.each([
    ['a"b', 'line 1: a quote inside an unquoted field'],
    ['x\n"a"b', 'line 2: text after a quoted field'],
    ['x\n\n"a', 'line 3: a quoted field has no end'],
    ['"x\ny",b\na"', 'line 3: a quote inside an unquoted field'],
  ])('%j is refused with its line', (text, message) => {
    expect(() => parseCsv(text)).toThrow(message)
  })
})

interface Line {
  readonly level: string
  readonly fields: object
  readonly message: string
}

function recorder(): { readonly log: Logger; readonly lines: Line[] } {
  const lines: Line[] = []
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields, message })
  }
  const log: Logger = {
    ...silentLogger,
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    child: () => log,
  }
  return { log, lines }
}

function fakeFile(content: string) {
  const { log, lines } = recorder()
  const file = { content, changed: () => {}, watched: true }
  const options = {
    path: 'tokens.csv',
    read: async () => {
      if (file.content === 'unreadable') throw new Error('EACCES')
      return file.content
    },
    watch: (onChange: () => void) => {
      file.changed = onChange
      return () => {
        file.watched = false
      }
    },
    log,
  }
  return { file, lines, open: () => openTokenFile(options) }
}

const signal = new AbortController().signal
const good = 'secret-1,jane,u-1,"dev,ops"\nsecret-2,bot,,\nsecret-3,max,u-3'

describe('the token file', () => {
  test('gives user, uid and groups [GND-R73]', async () => {
    const tokens = await fakeFile(good).open()
    expect(tokens.authenticateToken('secret-1', signal)).toEqual({
      user: { username: 'jane', uid: 'u-1', groups: ['dev', 'ops'] },
      method: 'token-file',
    })
    expect(tokens.authenticateToken('secret-2', signal)).toMatchObject({
      user: { username: 'bot', groups: [] },
    })
  })

  test.each([
    '',
    'secret',
    'secret-',
    'secret-1 ',
    'secret-11',
    'SECRET-1',
    'jane',
    'secret-1,jane',
  ])('does not know %j [GND-R73]', async (token) => {
    const tokens = await fakeFile(good).open()
    expect(tokens.authenticateToken(token, signal)).toBeUndefined()
  })

  test.each([
    [
      'a,b',
      'token file tokens.csv, line 1: at least 3 columns are needed (token, user name, user uid), found 2',
    ],
    [`${good}\nt,,u`, 'token file tokens.csv, line 4: the user name is empty'],
    [`${good}\n"t,u,i`, 'token file tokens.csv, line 4: a quoted field has no end'],
  ])('must be good at the start', async (content, message) => {
    await expect(fakeFile(content).open()).rejects.toThrow(message)
  })

  test('is read again when it changes [GND-R73]', async () => {
    const { file, open } = fakeFile(good)
    const tokens = await open()
    file.content = 'secret-9,new,u-9'
    file.changed()
    await tokens.reload()
    expect(tokens.authenticateToken('secret-1', signal)).toBeUndefined()
    expect(tokens.authenticateToken('secret-9', signal)).toMatchObject({
      user: { username: 'new' },
    })
  })

  test.each(['broken', 'secret-9,"x', 'unreadable'])(
    'keeps what it knew when it has become %j, and says so without a token [GND-R73]',
    async (content) => {
      const { file, lines, open } = fakeFile(good)
      const tokens = await open()
      file.content = content
      await tokens.reload()
      expect(tokens.authenticateToken('secret-1', signal)).toBeDefined()
      expect(lines).toContainEqual(
        expect.objectContaining({
          level: 'error',
          message: 'token file cannot be read, keeping the tokens known before',
        }),
      )
      const shown = lines.map(
        ({ fields }) => JSON.stringify(fields) + String(Object.values(fields)),
      )
      expect(shown.join()).not.toContain('secret-9')
    },
  )

  test('warns of doubles, of which the last counts, and of empty tokens', async () => {
    const { lines, open } = fakeFile('t,first,1\nt,second,2\n,nobody,3\nu,x,4,g1,g2')
    const tokens = await open()
    expect(tokens.authenticateToken('t', signal)).toMatchObject({ user: { username: 'second' } })
    expect(tokens.authenticateToken('', signal)).toBeUndefined()
    expect(tokens.authenticateToken('u', signal)).toMatchObject({ user: { groups: ['g1'] } })
    expect(lines.map(({ fields, message }) => ({ ...fields, message }))).toEqual([
      { path: 'tokens.csv', line: 2, message: 'token file has a token twice, the last counts' },
      { path: 'tokens.csv', line: 3, message: 'token file has an empty token, which is ignored' },
      { path: 'tokens.csv', line: 4, message: 'token file has more than four columns' },
    ])
  })

  test('is no longer watched after close', async () => {
    const { file, open } = fakeFile(good)
    const tokens = await open()
    tokens.close()
    expect(file.watched).toBe(false)
  })
})

describe('tokens of the form id.secret in the token file', () => {
  const mixed =
    'abcdef.0123456789abcdef,admin,u-1,system:masters\nabcdef,plain,u-2\nopaque.token,other,u-3'

  test('are found by their ids, and others are not [DISC-R37, DISC-T11]', async () => {
    const tokens = await fakeFile(mixed).open()
    const found = tokens.findStructured('abcdef')
    expect(found?.secret.reveal()).toBe('0123456789abcdef')
    expect(found?.authentication.user).toEqual({
      username: 'admin',
      uid: 'u-1',
      groups: ['system:masters'],
    })
    expect(['opaque', 'plain', ''].map((id) => tokens.findStructured(id))).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('can be shown as they are like all others [DISC-R38, DISC-T11]', async () => {
    const tokens = await fakeFile(mixed).open()
    const users = ['abcdef.0123456789abcdef', 'abcdef', 'opaque.token'].map(
      (token) => tokens.authenticateToken(token, signal) as { user: { username: string } },
    )
    expect(users.map(({ user }) => user.username)).toEqual(['admin', 'plain', 'other'])
  })

  test('may not share an id [DISC-R38]', async () => {
    const twice = `${mixed}\nabcdef.fedcba9876543210,mallory,u-9`
    await expect(fakeFile(twice).open()).rejects.toThrow(
      'token file tokens.csv, line 4: another token has the same id, abcdef',
    )
  })

  test('may stand there twice, the last counts [DISC-R38]', async () => {
    const twice = `${mixed}\nabcdef.0123456789abcdef,jane,u-9`
    const tokens = await fakeFile(twice).open()
    expect(tokens.findStructured('abcdef')?.authentication.user.username).toBe('jane')
  })

  test('are gone when the file has lost them [DISC-R37]', async () => {
    const { file, open } = fakeFile(mixed)
    const tokens = await open()
    file.content = 'opaque.token,other,u-3'
    await tokens.reload()
    expect(tokens.findStructured('abcdef')).toBeUndefined()
  })
})
