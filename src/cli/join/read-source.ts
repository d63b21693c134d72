import { readFile, stat } from 'node:fs/promises'
import { ReadStream } from 'node:tty'
import { CommandFailed, Secret, systemErrorCode } from '../../core/index.ts'
import type { Io } from '../io.ts'
import { standardInput } from '../standard-input.ts'
import { hiddenLine } from './hidden-line.ts'
import type { Source } from './join-plan.ts'

/** More than any token has. */
const longestToken = 4096

/** Reads a token from where the command line says it is. */
export async function readToken(source: Source, io: Io): Promise<Secret> {
  if (source.from === 'argument') return source.text
  const text = source.from === 'file' ? await tokenInFile(source.path, io) : await tokenTyped(io)
  const token = text.trim()
  if (token !== '') return new Secret(token)
  throw new CommandFailed('TOKEN_MISSING', 'there is no token where it should be read from', {
    hint: 'put it there as one line: ID.SECRET',
  })
}

async function tokenInFile(path: string, io: Io): Promise<string> {
  try {
    const { mode, size } = await stat(path)
    // A file that others can read is not a good place, but a token in argv is a worse one.
    if ((mode & 0o077) !== 0) io.stderr(`warning: others may read ${path}: chmod 600 it\n`)
    if (size <= longestToken) return await readFile(path, 'utf8')
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    const why = code === 'ENOENT' ? 'there is no such file' : code
    throw new CommandFailed('TOKEN_UNREADABLE', `cannot read the token in ${path}: ${why}`, {
      hint: 'name a file that this user may read',
      cause,
    })
  }
  throw new CommandFailed('TOKEN_UNREADABLE', `${path} is too long to be a token`, {
    hint: 'the file must have the token and nothing else',
  })
}

async function tokenTyped(io: Io): Promise<string> {
  const input = standardInput()
  if (input instanceof ReadStream) {
    const line = await hiddenLine(input, () => io.stderr('Token (it is not shown): '))
    io.stderr('\n')
    return line
  }
  let text = ''
  for await (const part of input) {
    text += String(part)
    if (text.includes('\n') || text.length > longestToken) break
  }
  return text.split('\n', 1)[0] ?? ''
}
