// Derives src/api/schema/generated/tables.ts from the published Kubernetes modules: field numbers
// and types from generated.proto, JSON names and merge rules from the tags of the Go structs.
// Only facts are taken (names, types, numbers, keys), no descriptions. Needs `go` for the download.
//
//   node scripts/derive-schema.mjs          writes the file
//   node scripts/derive-schema.mjs --check  exits 1 when the file is not what would be written

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const version = 'v0.36.3'
const target = fileURLToPath(new URL('../src/api/schema/generated/tables.ts', import.meta.url))

/** Our short name of a package -> its module and folder. */
const packages = {
  'core/v1': ['k8s.io/api', 'core/v1'],
  'discovery/v1': ['k8s.io/api', 'discovery/v1'],
  'events/v1': ['k8s.io/api', 'events/v1'],
  'coordination/v1': ['k8s.io/api', 'coordination/v1'],
  'rbac/v1': ['k8s.io/api', 'rbac/v1'],
  'certificates/v1': ['k8s.io/api', 'certificates/v1'],
  'authentication/v1': ['k8s.io/api', 'authentication/v1'],
  'authorization/v1': ['k8s.io/api', 'authorization/v1'],
  'meta/v1': ['k8s.io/apimachinery', 'pkg/apis/meta/v1'],
  runtime: ['k8s.io/apimachinery', 'pkg/runtime'],
}

/** API group of a package, kinds that are served (`+`: with a list). */
const roots = {
  'core/v1': [
    '',
    '+Namespace +ConfigMap +Secret +ServiceAccount +Service +Endpoints +Pod +Node +Event Binding',
  ],
  'discovery/v1': ['discovery.k8s.io', '+EndpointSlice'],
  'events/v1': ['events.k8s.io', '+Event'],
  'coordination/v1': ['coordination.k8s.io', '+Lease'],
  'rbac/v1': ['rbac.authorization.k8s.io', '+Role +ClusterRole +RoleBinding +ClusterRoleBinding'],
  'certificates/v1': ['certificates.k8s.io', '+CertificateSigningRequest'],
  'authentication/v1': ['authentication.k8s.io', 'TokenReview TokenRequest SelfSubjectReview'],
  'authorization/v1': [
    'authorization.k8s.io',
    'SubjectAccessReview LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview',
  ],
  'meta/v1': [
    'meta.k8s.io',
    'Status DeleteOptions CreateOptions UpdateOptions PatchOptions GetOptions ListOptions ' +
      'LabelSelector WatchEvent PartialObjectMetadata PartialObjectMetadataList ' +
      'APIVersions APIGroup APIGroupList APIResourceList',
  ],
}

/** Types with a JSON form of their own. */
const special = {
  'meta/v1.Time': 'time',
  'meta/v1.MicroTime': 'microtime',
  'meta/v1.FieldsV1': 'any',
  'meta/v1.Verbs': 'strings',
  'runtime.RawExtension': 'any',
  'intstr.IntOrString': 'intstr',
  'resource.Quantity': 'quantity',
  'authentication/v1.ExtraValue': 'strings',
  'authorization/v1.ExtraValue': 'strings',
  'certificates/v1.ExtraValue': 'strings',
}

const protoScalars = new Set(['string', 'int32', 'int64', 'bool', 'bytes'])
const protoPackages = {
  'k8s.io.apimachinery.pkg.apis.meta.v1': 'meta/v1',
  'k8s.io.apimachinery.pkg.runtime': 'runtime',
  'k8s.io.apimachinery.pkg.util.intstr': 'intstr',
  'k8s.io.apimachinery.pkg.api.resource': 'resource',
}

function moduleFolder(module) {
  const out = execFileSync('go', ['mod', 'download', '-json', `${module}@${version}`], {
    cwd: '/',
    env: { ...process.env, GOFLAGS: '-mod=mod' },
    encoding: 'utf8',
  })
  return JSON.parse(out).Dir
}

const shortPackage = (proto) =>
  protoPackages[proto] ?? proto.replace(/^k8s\.io\.api\.(\w+)\.(\w+)$/, '$1/$2')

/** Messages of one generated.proto: name -> [{ name, number, label, type }]. */
function parseProto(text, ownPackage) {
  const bare = text.replace(/^\s*\/\/.*$/gm, '')
  const messages = new Map()
  const qualify = (type) => {
    if (protoScalars.has(type)) return type
    if (!type.startsWith('.')) return `${ownPackage}.${type}`
    const dot = type.lastIndexOf('.')
    return `${shortPackage(type.slice(1, dot))}.${type.slice(dot + 1)}`
  }
  for (const [, name, body] of bare.matchAll(/^message (\w+) \{\n([\s\S]*?)^\}/gm)) {
    const fields = []
    for (const line of body.split('\n').filter((l) => l.trim() !== '')) {
      const map = /^\s*map<string, ([\w.]+)> (\w+) = (\d+);$/.exec(line)
      const plain = /^\s*(optional|repeated) ([\w.]+) (\w+) = (\d+);$/.exec(line)
      if (map) fields.push({ label: 'map', type: qualify(map[1]), name: map[2], number: +map[3] })
      else if (plain)
        fields.push({
          label: plain[1],
          type: qualify(plain[2]),
          name: plain[3],
          number: +plain[4],
        })
      else throw new Error(`${ownPackage}.${name}: cannot read "${line}"`)
    }
    messages.set(name, fields)
  }
  return messages
}

const byText = (a, b) => (a < b ? -1 : 1)

const marker = (comments, name) => {
  const line = comments.find((c) => c === `+${name}` || c.startsWith(`+${name}=`))
  return line?.slice(name.length + 2)
}
const markers = (comments, name) =>
  comments.filter((c) => c.startsWith(`+${name}=`)).map((c) => c.slice(name.length + 2))

const fieldLine = /^\t(?:(\w+)[ \t]+)?([*\w.[\]]+)[ \t]+`(.*)`/

function parseStruct(lines, start, where) {
  const fields = []
  let comments = []
  for (let i = start; !lines[i].startsWith('}'); i++) {
    const line = lines[i]
    const comment = /^\t\/\/ ?(.*)$/.exec(line)
    if (comment) comments.push(comment[1].trim())
    else if (line.trim() !== '') {
      const [, goName, goType, tags] = fieldLine.exec(line) ?? []
      if (tags === undefined) throw new Error(`${where}: cannot read "${line}"`)
      const tag = (name) => new RegExp(`(?:^| )${name}:"([^"]*)"`).exec(tags)?.[1]
      fields.push({ goName: goName ?? goType.split('.').at(-1), goType, tag, comments })
      comments = []
    }
  }
  return fields
}

/** Structs, named types and string constants of the Go files of one package. */
function parseGo(files, ownPackage) {
  const found = { structs: new Map(), named: new Map(), constants: new Map(), imports: new Map() }
  for (const text of files) {
    for (const [, alias, path] of text.matchAll(/^\t(\w+ )?"(k8s\.io\/[^"]+)"$/gm))
      found.imports.set(alias?.trim() ?? path.split('/').at(-1), path)
    const lines = text.split('\n')
    let comments = []
    for (const [i, line] of lines.entries()) {
      const comment = /^\/\/ ?(.*)$/.exec(line)
      const struct = /^type (\w+) struct \{$/.exec(line)
      const named = /^type (\w+) ((?:\[\]|map\[\w+\])?[\w.]+)$/.exec(line)
      if (comment) comments.push(comment[1].trim())
      if (struct)
        found.structs.set(struct[1], {
          atomic: marker(comments, 'structType') === 'atomic',
          fields: () => parseStruct(lines, i + 1, `${ownPackage}.${struct[1]}`),
        })
      if (named) found.named.set(named[1], { type: named[2], isEnum: comments.includes('+enum') })
      if (!comment && line.trim() !== '') comments = []
      readConstant(line, found.constants)
    }
  }
  return found
}

function readConstant(line, constants) {
  const typed = /^\t(\w+)\s+(\w+)\s*= ("[^"]*")/.exec(line)
  const cast = /^\t(\w+)\s*= (\w+)\(("[^"]*"|\w+\.\w+)\)/.exec(line)
  const found = typed ?? cast
  if (found) constants.set(found[1], { type: found[2], value: found[3] })
}

function readPackages() {
  const folders = new Map()
  const read = {}
  for (const [name, [module, folder]] of Object.entries(packages)) {
    if (!folders.has(module)) folders.set(module, moduleFolder(module))
    const path = join(folders.get(module), folder)
    const files = readdirSync(path)
      .filter((f) => f.endsWith('.go') && !/_test\.go$|generated|_proto\.go$|fuzz/.test(f))
      .map((f) => readFileSync(join(path, f), 'utf8').replace(/\/\*[\s\S]*?\*\//g, ''))
    read[name] = {
      proto: parseProto(readFileSync(join(path, 'generated.proto'), 'utf8'), name),
      go: parseGo(files, name),
    }
  }
  return read
}

/** Named Go string types that list their values, as `package.Name` -> values in order. */
function enumValues(all, name) {
  const dot = name.lastIndexOf('.')
  const own = all[name.slice(0, dot)].go
  const type = name.slice(dot + 1)
  const values = []
  for (const constant of own.constants.values()) {
    if (constant.type !== type) continue
    const [alias, other] = constant.value.split('.')
    const source = constant.value.startsWith('"')
      ? constant.value
      : all[packageOfImport(own.imports.get(alias))].go.constants.get(other).value
    values.push(JSON.parse(source))
  }
  return [...new Set(values)].sort(byText)
}

const packageOfImport = (path) => {
  const found = Object.entries(packages).find(
    ([, [module, folder]]) => `${module}/${folder}` === path,
  )
  if (!found) throw new Error(`package ${path} is not in the list`)
  return found[0]
}

/** `package.Name` of the named type inside a Go type, or undefined for a built-in one. */
function namedInside(all, pkg, goType) {
  const bare = goType.replace(/^\*/, '').replace(/^(\[\]|map\[[\w.]+\])\*?/, '')
  const [alias, name] = bare.includes('.') ? bare.split('.') : [undefined, bare]
  if (alias === undefined) return all[pkg].go.named.has(name) ? `${pkg}.${name}` : undefined
  const path = all[pkg].go.imports.get(alias)
  const known = Object.values(packages).some(([m, f]) => `${m}/${f}` === path)
  return known ? `${packageOfImport(path)}.${name}` : undefined
}

/** The Go type as an error message of Go shows it. */
function shownGoType(all, pkg, goType) {
  const owner = (name) =>
    all[pkg].go.structs.has(name) || all[pkg].go.named.has(name) ? 'v1.' : ''
  return goType
    .replace(/^\*/, '')
    .replace(/\w+\./g, (alias) => {
      const path = all[pkg].go.imports.get(alias.slice(0, -1))
      return `${path?.split('/').at(-1) ?? alias.slice(0, -1)}.`
    })
    .replace(/(?<![.\w])[A-Za-z]\w*(?![.\w])/g, (name) => `${owner(name)}${name}`)
    .replace('[]byte', '[]uint8')
}

function typeOf(all, pkg, field, proto) {
  const base = special[proto.type] ?? proto.type
  const prefix = proto.label === 'map' ? '{}' : proto.label === 'repeated' ? '[]' : ''
  return `${field.goType.startsWith('*') ? '*' : ''}${prefix}${base}`
}

const defaultGoType = (type) =>
  type
    .replace('*', '')
    .replace('{}', 'map[string]')
    .replace('strings', '[]string')
    .replace('bytes', '[]uint8')
    .replace(/[\w/]+\.(\w+)$/, 'v1.$1')

const optionalOf = (field, json) => {
  if (field.comments.includes('+optional')) return true
  if (field.comments.includes('+required')) return false
  return json.includes('omitempty')
}

/** The row of one field: name, number, type, then marks. */
function rowOf(all, pkg, where, field) {
  const [jsonName, ...options] = (field.tag('json') ?? '').split(',')
  if (options.includes('inline') && field.tag('protobuf') === undefined)
    return `${field.goName} 0 meta/v1.TypeMeta inline`
  const wireName =
    /name=(\w+)/.exec(field.tag('protobuf') ?? '')?.[1] ??
    field.goName[0].toLowerCase() + field.goName.slice(1)
  const number = Number(field.tag('protobuf')?.split(',')[1])
  const proto = all[pkg].proto.get(where).find((f) => f.name === wireName)
  if (!proto || proto.number !== number)
    throw new Error(`${pkg}.${where}.${field.goName}: tag and generated.proto disagree`)
  const type = typeOf(all, pkg, field, proto)
  if (options.includes('inline')) return `${field.goName} ${number} ${type} inline`
  const row = [jsonName, number, type]
  if (options.includes('omitempty')) row.push('omitempty')
  if (options.includes('omitzero')) row.push('omitzero')
  if (!optionalOf(field, options)) row.push('required')
  row.push(...mergeMarks(field), ...valueMarks(all, pkg, field, type))
  return row.join(' ')
}

function mergeMarks(field) {
  const marks = []
  const add = (name, value) => value && marks.push(`${name}=${value}`)
  add('mergeKey', field.tag('patchMergeKey'))
  add('patch', field.tag('patchStrategy'))
  add('list', marker(field.comments, 'listType'))
  add('listKeys', markers(field.comments, 'listMapKey').join(','))
  add('map', marker(field.comments, 'mapType') ?? marker(field.comments, 'structType'))
  return marks
}

function valueMarks(all, pkg, field, type) {
  const marks = []
  const base = type.replace(/^\*?(\[\]|\{\})?/, '')
  const shown = shownGoType(all, pkg, field.goType)
  if (shown !== defaultGoType(type) && !['time', 'microtime'].includes(base))
    marks.push(`go=${shown}`)
  const named = namedInside(all, pkg, field.goType)
  if (named && isEnum(all, named)) marks.push(`enum=${named}`)
  const preset = marker(field.comments, 'default')
  if (preset && !/\s|^ref\(/.test(preset)) marks.push(`default=${preset}`)
  return marks
}

const isEnum = (all, name) => {
  const dot = name.lastIndexOf('.')
  return all[name.slice(0, dot)].go.named.get(name.slice(dot + 1))?.isEnum === true
}

/** Everything reachable from the roots, as message -> { atomic, rows }. */
function collect(all, kinds) {
  const messages = new Map()
  const enums = new Map()
  const queue = Object.values(kinds)
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (messages.has(name)) continue
    const dot = name.lastIndexOf('.')
    const pkg = name.slice(0, dot)
    const struct = all[pkg].go.structs.get(name.slice(dot + 1))
    if (!struct) throw new Error(`no struct ${name}`)
    const rows =
      name === 'meta/v1.TypeMeta'
        ? ['kind 0 string omitempty', 'apiVersion 0 string omitempty']
        : struct.fields().map((field) => rowOf(all, pkg, name.slice(dot + 1), field))
    messages.set(name, { atomic: struct.atomic, rows })
    for (const row of rows) {
      const message = /^\S+ \d+ \*?(?:\[\]|\{\})?([\w/]+\.\w+)/.exec(row)?.[1]
      if (message) queue.push(message)
      const listed = /enum=(\S+)/.exec(row)?.[1]
      if (listed) enums.set(listed, enumValues(all, listed))
    }
  }
  return { messages, enums }
}

function kindsOf() {
  const kinds = {}
  for (const [pkg, [group, names]] of Object.entries(roots))
    for (const word of names.split(' ')) {
      const name = word.replace('+', '')
      const served = pkg === 'meta/v1' ? '/v1' : `${group}/v1`
      kinds[`${served}/${name}`] = `${pkg}.${name}`
      if (word.startsWith('+')) kinds[`${served}/${name}List`] = `${pkg}.${name}List`
    }
  return kinds
}

const quote = (text) => `'${text.replaceAll("'", "\\'")}'`
const sorted = (map) => [...map].sort(([a], [b]) => byText(a, b))

function render(kinds, { messages, enums }) {
  const out = [
    `// Derived by scripts/derive-schema.mjs from k8s.io/api and k8s.io/apimachinery ${version}. Do not edit.`,
    '',
    'export const kinds: Readonly<Record<string, string>> = {',
    ...sorted(Object.entries(kinds)).map(([gvk, name]) => `  ${quote(gvk)}: ${quote(name)},`),
    '}',
    '',
    'export const atomicStructs: readonly string[] = [',
    ...sorted(messages)
      .filter(([, m]) => m.atomic)
      .map(([name]) => `  ${quote(name)},`),
    ']',
    '',
    'export const enums: Readonly<Record<string, readonly string[]>> = {',
    ...sorted(enums).map(
      ([name, values]) => `  ${quote(name)}: [${values.map(quote).join(', ')}],`,
    ),
    '}',
    '',
    'export const structs: Readonly<Record<string, readonly string[]>> = {',
    ...sorted(messages).flatMap(([name, m]) => [
      `  ${quote(name)}: [`,
      ...m.rows.map((row) => `    ${quote(row)},`),
      '  ],',
    ]),
    '}',
    '',
  ]
  return out.join('\n')
}

const kinds = kindsOf()
const tables = collect(readPackages(), kinds)
const text = render(kinds, tables)
const fields = [...tables.messages.values()].reduce((n, m) => n + m.rows.length, 0)
const summary = `${Object.keys(kinds).length} kinds, ${tables.messages.size} structs, ${fields} fields, ${tables.enums.size} enums`
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== text) {
    console.error(`${target} is stale: run node scripts/derive-schema.mjs`)
    process.exitCode = 1
  } else console.log(`up to date: ${summary}`)
} else {
  writeFileSync(target, text)
  console.log(`wrote ${summary} (${Math.round(text.length / 1024)} KB)`)
}
