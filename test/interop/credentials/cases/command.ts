import { type ContestCase, credential, execUser } from '../contest-case.ts'

const good = credential({ token: 'plain-token' })

/** Section 2.7: how the command is found and started. */
export const commandCases: readonly ContestCase[] = [
  command('a bare name that is nowhere', { command: 'sallyport-no-such-plugin' }),
  command('a path that is not there', { command: '/nonexistent/plugin' }),
  command('a relative path, from the directory of the kubeconfig', { command: './local-plugin' }),
  command('a relative path without a dot', { command: 'sub/plugin' }),
  command('a bare name in the current directory only', { command: 'local-plugin' }),
  {
    ...command('a bare name with . in PATH', { command: 'local-plugin' }),
    env: () => ({ PATH: `.:${process.env['PATH']}` }),
  },
  {
    ...command('a bare name with an empty entry in PATH', { command: 'local-plugin' }),
    env: () => ({ PATH: `:${process.env['PATH']}` }),
  },
  {
    ...command('a bare name in PATH', { command: 'local-plugin' }),
    env: ({ directory }) => ({ PATH: `${directory}/bin-of-nobody:${process.env['PATH']}` }),
  },
  {
    name: 'command: PATH of the section does not help to find it',
    user: ({ directory }) =>
      execUser('', { PATH: `${directory}:/usr/bin:/bin` }, { command: 'local-plugin' }),
    files: localPlugin(0o755),
  },
  {
    ...command('a file without the right to run', { command: './local-plugin' }),
    files: localPlugin(0o644),
  },
  {
    ...command('a text without an interpreter', { command: './local-plugin' }),
    files: { 'local-plugin': ['echo hello\n', 0o755] },
  },
  {
    ...command('a script whose interpreter is missing', { command: './local-plugin' }),
    files: { 'local-plugin': ['#!/nonexistent/sh\n', 0o755] },
  },
  command('a directory', { command: '/tmp' }),
  command('a tilde', { command: '~/local-plugin' }),
  command('a variable', { command: '$HOME/local-plugin' }),
  {
    name: 'command: arguments that a shell would heed',
    user: execUser(
      '',
      {},
      { command: './echo-plugin', args: ['(CLUSTER_ID)', '$(id);`id`', '"*', '', 'two words'] },
    ),
    files: echoPlugin('printf "%s|" "$@"'),
  },
  {
    name: 'command: where it runs',
    user: execUser('', {}, { command: './echo-plugin' }),
    files: echoPlugin('basename "$PWD" | tr -d "\\n"'),
  },
  {
    name: 'command: the last of two variables of one name',
    user: execUser(
      '',
      {},
      {
        command: './echo-plugin',
        env: [
          { name: 'TWICE', value: 'one' },
          { name: 'TWICE', value: 'two' },
        ],
      },
    ),
    files: echoPlugin('printf %s "$TWICE"'),
  },
  {
    name: 'command: variables of the host, and the section before them',
    user: execUser(
      '',
      {},
      { command: './echo-plugin', env: [{ name: 'FROM_BOTH', value: 'section' }] },
    ),
    env: () => ({ FROM_HOST: 'host', FROM_BOTH: 'host' }),
    files: echoPlugin('printf %s "$FROM_HOST-$FROM_BOTH"'),
  },
  {
    name: 'command: the exec info cannot be replaced',
    user: execUser('presigned-token', { KUBERNETES_EXEC_INFO: '{}' }),
  },
  {
    name: 'command: stdin is empty',
    user: execUser('', {}, { command: './echo-plugin' }),
    files: echoPlugin('cat'),
  },
]

function localPlugin(mode: number): NonNullable<ContestCase['files']> {
  return { 'local-plugin': [`#!/bin/sh\necho '${good}'\n`, mode] }
}

function command(name: string, rest: object): ContestCase {
  return { name: `command: ${name}`, user: execUser('', {}, rest), files: localPlugin(0o755) }
}

/** A plugin whose token tells, in base64, what it found. */
function echoPlugin(found: string): NonNullable<ContestCase['files']> {
  const answer = credential({ token: 'TOKEN' }).replace('TOKEN', '%s')
  const script = `#!/bin/sh\nprintf '${answer}' "t-$(${found} | base64 | tr -d '\\n')"\n`
  return { 'echo-plugin': [script, 0o755] }
}
