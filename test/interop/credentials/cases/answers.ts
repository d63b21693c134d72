import { type ContestCase, credential, group, printing } from '../contest-case.ts'

const v1 = `${group}/v1`
const token = { token: 'plain-token' }
const answers = (name: string, output: string): ContestCase => ({
  name: `answer: ${name}`,
  user: printing(output),
})
const object = (fields: object): string => JSON.stringify(fields)

/** Table 2.8 of the fact sheet and its neighbours: what a plugin prints. */
export const answerCases: readonly ContestCase[] = [
  answers('a token', credential(token)),
  answers('kind missing', object({ apiVersion: v1, status: token })),
  answers('kind empty', object({ kind: '', apiVersion: v1, status: token })),
  answers('another kind', object({ kind: 'Pod', apiVersion: v1, status: token })),
  answers('kind in lower case', object({ kind: 'execcredential', apiVersion: v1, status: token })),
  answers('kind is a number', object({ kind: 1, apiVersion: v1, status: token })),
  answers('apiVersion missing', object({ kind: 'ExecCredential', status: token })),
  answers('apiVersion empty', object({ kind: 'ExecCredential', apiVersion: '', status: token })),
  answers(
    'apiVersion is a number',
    object({ kind: 'ExecCredential', apiVersion: 1, status: token }),
  ),
  answers('nothing', ''),
  answers('only spaces', ' \n '),
  answers('null', 'null'),
  answers('a list', '[]'),
  answers('a number', '42'),
  answers('a string', '"text"'),
  answers(
    'another known version',
    object({ kind: 'ExecCredential', apiVersion: `${group}/v1beta1`, status: token }),
  ),
  answers(
    'a version that nobody knows',
    object({ kind: 'ExecCredential', apiVersion: `${group}/v9`, status: token }),
  ),
  answers(
    'a version of another group',
    object({ kind: 'ExecCredential', apiVersion: 'example.com/v1', status: token }),
  ),
  answers('YAML', `kind: ExecCredential\napiVersion: ${v1}\nstatus:\n  token: yaml-token\n`),
  answers(
    'YAML with a comment before',
    `# hello\nkind: ExecCredential\napiVersion: ${v1}\nstatus: {token: t}\n`,
  ),
  answers(
    'YAML with a document marker',
    `---\nkind: ExecCredential\napiVersion: ${v1}\nstatus: {token: t}\n`,
  ),
  answers(
    'YAML with a token that reads as a number',
    `kind: ExecCredential\napiVersion: ${v1}\nstatus: {token: 123}\n`,
  ),
  answers(
    'YAML with a token that reads as a boolean',
    `kind: ExecCredential\napiVersion: ${v1}\nstatus: {token: yes}\n`,
  ),
  answers(
    'two YAML documents',
    `kind: ExecCredential\napiVersion: ${v1}\nstatus: {token: one}\n---\nkind: ExecCredential\napiVersion: ${v1}\nstatus: {token: two}\n`,
  ),
  answers(
    'YAML with an alias',
    `kind: ExecCredential\napiVersion: ${v1}\nstatus: {token: &a t, other: *a}\n`,
  ),
  answers('a byte order mark before', `\uFEFF${credential(token)}`),
  answers('spaces before', `  \n${credential(token)}`),
  answers('text before', `notice\n${credential(token)}`),
  answers('text after', `${credential(token)}\nbye`),
  answers('the same object twice', `${credential(token)}\n${credential(token)}`),
  answers(
    'unknown fields',
    object({ kind: 'ExecCredential', apiVersion: v1, more: 1, status: { ...token, more: {} } }),
  ),
  answers(
    'keys in another case',
    object({ kind: 'ExecCredential', apiVersion: v1, Status: { Token: 't' } }),
  ),
  answers(
    'a doubled key',
    `{"kind":"ExecCredential","apiVersion":"${v1}","status":{"token":"one","token":"two"}}`,
  ),
  answers(
    'spec of a wrong type',
    object({ kind: 'ExecCredential', apiVersion: v1, spec: 'text', status: token }),
  ),
  answers('no status', object({ kind: 'ExecCredential', apiVersion: v1 })),
  answers('status null', credential(null)),
  answers('status empty', credential({})),
  answers('status is a text', credential('text')),
  answers('token empty', credential({ token: '' })),
  answers('token null', credential({ token: null })),
  answers('token is a number', credential({ token: 5 })),
  answers('token with a newline', credential({ token: 'two\nlines' })),
  answers('token with a NUL', credential({ token: 'a\u0000b' })),
  answers('token beyond ASCII', credential({ token: 'tökén' })),
  answers('token with a tab', credential({ token: 'a\tb' })),
  answers('token with spaces round it', credential({ token: ' padded ' })),
  ...(
    [
      ['expiry far away', '2999-01-01T00:00:00Z'],
      ['expiry in the past', '2001-01-01T00:00:00Z'],
      ['expiry with an offset', '2999-01-01T00:00:00+05:30'],
      ['expiry with fractions', '2999-01-01T00:00:00.123456789Z'],
      ['expiry with a comma fraction', '2999-01-01T00:00:00,5Z'],
      ['expiry in lower case', '2999-01-01t00:00:00z'],
      ['expiry with a space', '2999-01-01 00:00:00Z'],
      ['expiry without a zone', '2999-01-01T00:00:00'],
      ['expiry with an offset of 24 hours', '2999-01-01T00:00:00+24:00'],
      ['expiry with an hour of one digit', '2999-01-01T0:00:00Z'],
      ['expiry on the 30th of February', '2999-02-30T00:00:00Z'],
      ['expiry on a leap second', '2998-12-31T23:59:60Z'],
      ['expiry at hour 24', '2998-12-31T24:00:00Z'],
      ['expiry is rubbish', 'tomorrow'],
      ['expiry empty', ''],
      ['expiry null', null],
      ['expiry a number', 4102444800],
      ['expiry never set by Go', '0001-01-01T00:00:00Z'],
    ] as const
  ).map(([name, expirationTimestamp]) =>
    answers(name, credential({ ...token, expirationTimestamp })),
  ),
]
