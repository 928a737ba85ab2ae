import type { VariableDeclarator } from '@swc/core'
import { Visitor } from '@swc/core/Visitor.js'
import type { IConfiguration, IForbiddenRuleType } from 'dependency-cruiser'

const { visitStatement } = Visitor.prototype
/** The parser knows `using`, but neither the visitor of its result nor the types do. */
Visitor.prototype.visitStatement = function (statement) {
  const { type, decls = [] } = statement as { type: string; decls?: VariableDeclarator[] }
  if (type !== 'UsingDeclaration') return visitStatement.call(this, statement)
  this.visitVariableDeclarators(decls)
  return statement
}

/** Who may know whom (docs/architecture.md). A type counts like a value where no rule says otherwise.
 *  `test/boundaries.test.ts` shows that each rule bites. */

const face = '^src/modules/(?<module>[^/]+)/\\k<module>[.]ts$'
const routes = '(routes|/socket)[.]ts$'
/** Rows without rules: one file is routes, service and store. */
const withoutRules = '^src/modules/support/canned-replies[.]ts$'
const start = '^src/(serve[.]ts$|cli/)'
const client = '^(src/)?client/'
const npm = (name: string) => `(^|node_modules/)${name}(/|$)`

const rules: IForbiddenRuleType[] = [
  {
    name: 'only-app-and-faces-mount-routes',
    from: { pathNot: ['^src/app[.]ts$', face] },
    to: { path: routes },
  },
  {
    name: 'modules-are-passed-to-each-other',
    from: { path: '^src/modules/([^/]+)/' },
    to: { path: ['^src/modules/', routes], pathNot: '^src/modules/$1/' },
  },
  {
    name: 'machinery-knows-no-module',
    from: {
      path: '^src/(api|http|realtime|jobs|outside|files|db|replication|web|metrics)[/.]',
    },
    to: { path: '^src/modules/' },
  },
  {
    name: 'only-routes-know-http',
    from: {
      path: '^src/modules/',
      // Tokens are signed through @elysiajs/jwt.
      pathNot: [routes, face, withoutRules, '^src/modules/accounts/sign-in/tokens[.]ts$'],
    },
    to: { path: [npm('elysia'), npm('@elysiajs'), '^src/http/'] },
  },
  {
    name: 'only-stores-know-sql',
    from: {
      pathNot: ['store[.]ts$', '^src/db/', '^src/jobs/(outbox|retention)[.]ts$', withoutRules],
    },
    to: { path: [npm('drizzle-orm'), '^src/db/schema[.]ts$'] },
  },
  {
    // Replication pins and copies whole database files.
    name: 'only-the-start-opens-databases',
    from: { pathNot: [start, '^src/(db|replication)/'] },
    to: { path: ['^src/db/open[.]ts$', '^bun:sqlite$'], dependencyTypesNot: ['type-only'] },
  },
  {
    name: 'only-the-start-creates-drivers',
    from: { pathNot: [start, '^src/files/'] },
    to: {
      path: [
        '^src/outside/mail/smtp[.]ts$',
        '^src/outside/push/(fcm|web-push)[.]ts$',
        '^src/files/(disk|s3)[.]ts$',
      ],
      dependencyTypesNot: ['type-only'],
    },
  },
  {
    name: 'only-metrics-know-prometheus',
    from: { pathNot: '^src/metrics[/.]' },
    to: { path: npm('prom-client') },
  },
  {
    // `hostline version` must not wait for the code of the server.
    name: 'commands-load-on-demand',
    from: { path: '^src/(main|cli/(run|terminal))[.]ts$' },
    to: {
      path: '^src/',
      pathNot: '^src/(cli/terminal|lib/(errors|text)|version)[.]ts$',
      dynamic: false,
    },
  },
  {
    name: 'lib-knows-nothing-of-ours',
    from: { path: '^src/lib/' },
    to: { dependencyTypes: ['local'], pathNot: '^src/lib/' },
  },
  {
    // What the pages show, everybody could build: they have the client and nothing else.
    name: 'pages-use-the-public-interface',
    from: { path: '^src/web/(kit|console|demo|reference)/' },
    to: {
      dependencyTypes: ['local'],
      pathNot: ['^src/web/(kit|texts)/', '^src/web/$1/', '^client/src/'],
    },
  },
  {
    name: 'client-stands-alone',
    from: { path: client },
    to: { pathNot: [client, ...['react', 'preact', 'vue'].map(npm)] },
  },
  {
    name: 'only-bindings-know-frameworks',
    from: { path: client, pathNot: '/(react|preact|vue)[.]ts$' },
    to: { pathNot: client },
  },
  // An import that leads nowhere would slip through the rules above. Only the types of React are installed.
  {
    name: 'imports-lead-somewhere',
    from: {},
    to: { couldNotResolve: true, pathNot: npm('react') },
  },
]

export default {
  forbidden: rules.map((rule) => ({ ...rule, severity: 'error' })),
  options: {
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['bun', 'import'] },
  },
} satisfies IConfiguration
