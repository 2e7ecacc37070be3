"""Drive basedpyright's language server to rename Python symbols by type."""
import ast, json, os, subprocess, sys, threading, queue, time, re
from pathlib import Path

class Server:
    def __init__(self, root: Path):
        self.root = root.resolve()
        self.p = subprocess.Popen(["/tmp/h/pyr/bin/basedpyright-langserver", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)
        self.n = 0; self.answers = {}; self.cv = threading.Condition(); self.versions = {}
        threading.Thread(target=self._read, daemon=True).start()
        self.ask("initialize", {"processId": os.getpid(), "rootUri": self.root.as_uri(),
            "workspaceFolders": [{"uri": self.root.as_uri(), "name": "w"}],
            "capabilities": {"workspace": {"workspaceEdit": {"documentChanges": True}, "configuration": True, "didChangeWatchedFiles": {"dynamicRegistration": True}},
             "textDocument": {"rename": {"prepareSupport": True}}}})
        self.say("initialized", {})
    def _send(self, m):
        b = json.dumps({"jsonrpc": "2.0", **m}).encode()
        self.p.stdin.write(b"Content-Length: %d\r\n\r\n" % len(b) + b); self.p.stdin.flush()
    def say(self, method, params): self._send({"method": method, "params": params})
    def ask(self, method, params, timeout=600):
        self.n += 1; n = self.n
        self._send({"id": n, "method": method, "params": params})
        with self.cv:
            if not self.cv.wait_for(lambda: n in self.answers, timeout): raise TimeoutError(method)
            a = self.answers.pop(n)
        if "error" in a: raise RuntimeError(a["error"])
        return a.get("result")
    def _read(self):
        f = self.p.stdout
        while True:
            n = 0
            while (line := f.readline().strip()):
                if line.lower().startswith(b"content-length"): n = int(line.split(b":")[1])
            if not n: return
            m = json.loads(f.read(n))
            if "method" in m:
                if "id" in m:
                    r = None
                    if m["method"] == "workspace/configuration":
                        r = [self.config(i.get("section")) for i in m["params"]["items"]]
                    self._send({"id": m["id"], "result": r})
            else:
                with self.cv: self.answers[m["id"]] = m; self.cv.notify_all()
    def config(self, section):
        if section in ("python",): return {"pythonPath": str(self.root/".venv/bin/python")}
        if section in ("basedpyright.analysis","python.analysis"): return {"diagnosticMode":"openFilesOnly","typeCheckingMode":"off","indexing":True,"exclude":["**/node_modules",".venv","cdk.out",".build"]}
        return {}
    def open(self, path: Path):
        uri = path.resolve().as_uri()
        if uri in self.versions: return uri
        self.versions[uri] = 1
        self.say("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": path.read_text()}})
        return uri
    def rename(self, path: Path, line: int, col: int, new: str):
        uri = self.open(path)
        r = self.ask("textDocument/rename", {"textDocument": {"uri": uri}, "position": {"line": line, "character": col}, "newName": new})
        return self.apply(r)
    def apply(self, r):
        if not r: return 0, []
        count = 0; files = []
        changes = {}
        for c in r.get("documentChanges") or []:
            if "edits" in c: changes.setdefault(c["textDocument"]["uri"], []).extend(c["edits"])
        for u, e in (r.get("changes") or {}).items(): changes.setdefault(u, []).extend(e)
        from urllib.parse import urlparse, unquote
        for uri, edits in changes.items():
            p = Path(unquote(urlparse(uri).path))
            if not str(p).startswith(str(self.root)) or ".venv" in str(p): print("  OUTSIDE", p); continue
            lines = p.read_text().splitlines(keepends=True)
            seen=set()
            for e in sorted(edits, key=lambda e: (e["range"]["start"]["line"], e["range"]["start"]["character"]), reverse=True):
                s, t = e["range"]["start"], e["range"]["end"]
                k=(s["line"],s["character"])
                if k in seen: continue
                seen.add(k)
                assert s["line"] == t["line"]
                l = lines[s["line"]]
                # characters are UTF-16 units
                def ix(u):
                    b = l.encode("utf-16-le")[: u*2].decode("utf-16-le"); return len(b)
                lines[s["line"]] = l[: ix(s["character"])] + e["newText"] + l[ix(t["character"]):]
                count += 1
            text = "".join(lines); p.write_text(text); files.append(p)
            u = p.resolve().as_uri()
            if u in self.versions:
                self.versions[u] += 1
                self.say("textDocument/didChange", {"textDocument": {"uri": u, "version": self.versions[u]}, "contentChanges": [{"text": text}]})
            self.say("workspace/didChangeWatchedFiles", {"changes": [{"uri": u, "type": 2}]})
        return count, files

def find(path: Path, dotted: str):
    """Position of a definition: Class, func, CONST, Class.member, Class.method(param), func(param), func:local."""
    tree = ast.parse(path.read_text()); lines = path.read_text().splitlines()
    m = re.fullmatch(r"([\w.]+)(?:\((\w+)\)|:(\w+))?", dotted); names, param, local = m.group(1).split("."), m.group(2), m.group(3)
    body = tree.body; node = None
    for i, name in enumerate(names):
        node = None
        for n in body_all(body):
            if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) and n.name == name: node = n; pos = (n.lineno, None)
            elif isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in n.targets): node = n
            elif isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and n.target.id == name: node = n
            elif isinstance(n, ast.TypeAlias) if hasattr(ast, "TypeAlias") else False:
                pass
            if node: break
        if node is None and i > 0:  # instance attribute
            for n in body_all(body, deep=True):
                if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self" and n.attr == name and isinstance(n.ctx, ast.Store):
                    return n.end_lineno - 1, n.end_col_offset - len(name)
        if node is None: raise KeyError(f"{path}: {dotted}")
        body = getattr(node, "body", [])
    if param:
        a = node.args
        for x in [*a.posonlyargs, *a.args, *a.kwonlyargs, *([a.vararg] if a.vararg else []), *([a.kwarg] if a.kwarg else [])]:
            if x.arg == param: return x.lineno - 1, x.col_offset
        raise KeyError(f"{path}: {dotted}")
    if local:
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and n.id == local and isinstance(n.ctx, ast.Store): return n.lineno - 1, n.col_offset
        raise KeyError(f"{path}: {dotted}")
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        l = lines[node.lineno - 1]; return node.lineno - 1, re.search(rf"\b{names[-1]}\b", l[node.col_offset:]).start() + node.col_offset
    t = node.target if isinstance(node, ast.AnnAssign) else next(t for t in node.targets if isinstance(t, ast.Name) and t.id == names[-1])
    return t.lineno - 1, t.col_offset

def body_all(body, deep=False):
    for n in body:
        yield n
        if deep: yield from ast.walk(n)
        elif isinstance(n, (ast.If, ast.Try)): 
            yield from body_all(n.body); yield from body_all(n.orelse)
