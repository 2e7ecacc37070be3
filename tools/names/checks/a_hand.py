exec(open("/tmp/map-A-tools/a_check.py").read().split("ok=0")[0])
moves=dict(l.split(" => ") for l in open("/tmp/map-A-tools/a_moves.txt").read().split("\n") if l)
# rule a after
src=open("/tmp/h/rules_ab.py").read()
ns={}
exec(src.split("bad=[]")[0].replace('root=Path(sys.argv[1] if len(sys.argv)>1 else ".")',''),ns)
for f,t in trees.items():
    if not re.match(r"shared/(planning|packing|scheduling)/",f) or f.endswith("__init__.py"): continue
    m={d:n for g,d,n in DEFS if g==f and "." not in d}
    pub=[n.name for n in t.body if isinstance(n,(ast.FunctionDef,ast.ClassDef))]+[x.id for n in t.body if isinstance(n,(ast.Assign,ast.AnnAssign)) for x in (n.targets if isinstance(n,ast.Assign) else [n.target]) if isinstance(x,ast.Name)]
    pub=[m.get(x,x) for x in pub]; pub=[x for x in pub if not x.startswith("_")]
    stem=Path(moves.get(f,f)).stem; fw=ns["stems"](ns["words"](stem))
    if pub and not any(ns["stems"](ns["words"](x))&fw for x in pub): print("# RULE A STILL",f,pub)
fields=collections.defaultdict(dict)  # class -> old->new
for f,d,n in DEFS:
    if d.count(".")==1 and not d.startswith("_open"): fields[d.split(".")[0]][d.split(".")[1]]=n
out=[]
allf={o:n for c in fields.values() for o,n in c.items()}
# slots
for c,fs in fields.items():
    for ff,z in classes.get(c,[]):
        for n in z.body:
            if isinstance(n,ast.Assign) and any(isinstance(x,ast.Name) and x.id=="__slots__" for x in n.targets):
                ss=[e.value for e in ast.walk(n) if isinstance(e,ast.Constant)]
                hit=[f"{s} -> {fs[s]}" for s in ss if s in fs]
                if hit and ff.startswith("shared/"): out.append(f"# BY HAND {ff}:{n.lineno} __slots__ of {c}: {', '.join(hit)}")
# keywords
nt={c for c in fields for ff,z in classes.get(c,[]) if any("NamedTuple" in ast.unparse(b) for b in z.bases)}
cnt=collections.Counter()
for f,t in sorted(trees.items()):
    if not any(isinstance(k,ast.ImportFrom) and k.module and re.match(r"shared\.(planning|packing|scheduling)",k.module) for k in ast.walk(t)): continue
    for n in ast.walk(t):
        if isinstance(n,ast.Call):
            fn=n.func.attr if isinstance(n.func,ast.Attribute) else n.func.id if isinstance(n.func,ast.Name) else ""
            if fn in ("replace","_replace"):
                hit=[f"{k.arg} -> {allf[k.arg]}" for k in n.keywords if k.arg in allf]
                if hit: out.append(f"# BY HAND {f}:{n.lineno} keywords of {fn}(): {', '.join(hit)}   (if the object is of the renamed class)")
            elif fn in nt:
                hit=[k.arg for k in n.keywords if k.arg in fields[fn]]
                for h in hit: cnt[(fn,h,fields[fn][h],f)]+=1
            if fn=="setattr":
                for a_ in n.args:
                    if isinstance(a_,ast.Constant) and isinstance(a_.value,str):
                        last=a_.value.split(".")[-1]
                        m=[(g,d,x) for g,d,x in DEFS if d==last]
                        if m and f.startswith("tests/"): out.append(f"# BY HAND {f}:{n.lineno} setattr string \"{a_.value}\" -> {m[0][2]} (if of {', '.join(g for g,_,_ in m)})")
for (c,h,n,f),k in sorted(cnt.items()): out.append(f"# BY HAND {f}: {k} x keyword {h}= -> {n}= in {c}(...) (a NamedTuple)")
print("\n".join(out))
