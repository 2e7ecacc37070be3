"""Carry out the renames of maps: carry.py ROOT MAP [MAP ...]"""
import sys, time, subprocess, json
sys.path.insert(0, str(Path(__file__).parent) if "Path" in globals() else "/tmp/h/ren")
from lsp import *
root = Path(sys.argv[1]).resolve()
s = Server(root)
w = root/"shared/ports/cluster.py"
l, c = find(w, "NodeChange") if "class NodeChange" in w.read_text() else (None, None)
if l is not None:
    uri = s.open(w)
    last = -1
    for _ in range(60):
        r = s.ask("textDocument/references", {"textDocument": {"uri": uri}, "position": {"line": l, "character": c}, "context": {"includeDeclaration": True}})
        if r and len(r) == last and last > 50: break
        last = len(r or []); time.sleep(1)
    print("index", last, flush=True)
names = []; moves = []; bad = []
for m in sys.argv[2:]:
    for raw in Path(m).read_text().splitlines():
        line = raw.split("  #")[0].strip()
        if not line or line.startswith("#"): continue
        if "=>" in line: moves.append([x.strip() for x in line.split("=>")]); continue
        try: f, rest = [x.strip() for x in line.split("::")]; d, new = [x.strip() for x in rest.rsplit("->", 1)]
        except ValueError: bad.append(raw); print("UNREADABLE", raw); continue
        t = time.time()
        try:
            l, c = find(root/f, d); n, files = s.rename(root/f, l, c, new)
            print(f"{f} {d} -> {new}: {n} in {len(files)} {time.time()-t:.1f}s", flush=True)
            if not n: bad.append(raw)
        except Exception as e:
            bad.append(raw); print("FAILED", raw, type(e).__name__, str(e)[:200], flush=True)
print("BAD", len(bad)); [print(" ", b) for b in bad]
Path("/tmp/measure/moves.json").write_text(json.dumps(moves))
s.p.terminate()
